"""Which runs of an assignment the agent starts, as the site's policy and the clocks are."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reporters.remote.agent.gate import PolicyGate
from reporters.remote.agent.jobs import RunJob
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import Notices
from reporters.remote.agent.runner import RunEnd, Runner, RunnerUnavailable
from reporters.remote.agent.runs import RunRequest, Runs
from reporters.remote.assignment import parse
from reporters.remote.clock import ExchangeTimes, SiteClock
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import from_json, run_id, to_json
from reporters.skipped import skipped
from reporters.spool.spool import Spool
from tests.reporters.remote.agent_process import ROOT
from tests.reporters.remote.assignments import assignment, series
from tests.reporters.remote.policy.assignments import assignment as run_assignment

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


class JobList(Runner):
    """Keeps the jobs instead of running them; refuses them while *is_available* is false."""

    def __init__(self, *, is_available: bool = True) -> None:
        super().__init__(Path("/nonexistent"), lambda _: None)
        self.jobs: list[RunJob] = []
        self.is_available = is_available

    def start(self, job: RunJob) -> None:
        if not self.is_available:
            raise RunnerUnavailable("no process")
        self.jobs.append(job)

    def end_earlier_runs(self) -> None:
        """Leave the processes of other tests alone."""


def runs_of(
    state: StateDirectory, clock: SiteClock, runner: Runner, load1: Callable[[], float] = lambda: 0.0
) -> Runs:
    notices = Notices(AgentLog(state.path / "agent.log"), clock.now, clock.steady)
    spool = Spool(state.spool, "ncsa", is_durable=False)
    runs = Runs(state, clock, PolicyGate(state, load1=load1), spool, runner, notices, lambda: None)
    runs.assign(parse(json.dumps(assignment(series(schedule=""))), "ncsa"))
    return runs


def test_a_report_that_cannot_be_read_does_not_keep_the_others_from_the_spool(tmp_path: Path) -> None:
    state = StateDirectory.create(tmp_path / "state")
    runs = runs_of(state, SiteClock(), JobList())
    results = state.path / "results"
    (results / "1.report").mkdir()
    (results / "2.report").write_text("{")
    (results / "3.report").write_bytes(to_json(skipped(run_assignment(), "a test")))
    runs.look()
    assert {file.name for file in results.iterdir()} == {"1.report", "2.damaged"}
    assert len(Spool(state.spool, "ncsa").pending_runs()) == 1


def test_results_that_cannot_be_written_are_an_error_of_the_state_directory(tmp_path: Path) -> None:
    state = StateDirectory.create(tmp_path / "state")
    (state.path / "results").write_text("")
    with pytest.raises(StateError, match=r"cannot make .*results"):
        runs_of(state, SiteClock(), JobList())


def write_policy(state: StateDirectory, text: str) -> None:
    draft = state.path / "draft"
    draft.write_text(text)
    draft.chmod(0o600)
    draft.rename(state.path / "site-policy.json")


def requested(at: datetime) -> RunRequest:
    return RunRequest(str(run_id("noop-ncsa", at)), "noop-ncsa", at, at + timedelta(minutes=10))


def test_a_server_with_another_time_cannot_move_the_forbidden_hours(tmp_path: Path) -> None:
    """The slots go by the server's time; the site's rules by the clock of the site."""
    state = StateDirectory.create(tmp_path / "state")
    write_policy(state, '{"hours": {"forbid": [{"from": "08:00", "to": "18:00"}]}}')
    clock, runner = SiteClock(NOON.timestamp, lambda: 0.0), JobList()
    night = NOON - timedelta(hours=9)
    clock.add(ExchangeTimes(0.0, night.timestamp(), night.timestamp(), 0.0))
    assert clock.now() == night
    runs = runs_of(state, clock, runner)
    runs.request([requested(night)])
    runs.look()
    (job,) = runner.jobs
    assert (job.outcome, job.reason) == ("skipped", "policy: forbidden hours 08:00-18:00 UTC")


def test_a_run_has_the_caps_of_the_policy_that_admitted_it(tmp_path: Path) -> None:
    """The operator's editor writes the file between the admission and the start."""
    state = StateDirectory.create(tmp_path / "state")
    write_policy(state, '{"caps": {"load1": 8}}')

    def load1() -> float:
        write_policy(state, '{"caps": {"load1": 99}}')
        return 0.0

    clock, runner = SiteClock(NOON.timestamp, lambda: 0.0), JobList()
    runs = runs_of(state, clock, runner, load1)
    runs.request([requested(NOON)])
    runs.look()
    assert [job.assignment.max_load1 for job in runner.jobs] == [8]


@dataclass
class Hour:
    """A clock that the test sets; both of its times are those at noon and *seconds*."""

    seconds: float = 0.0

    def site_clock(self) -> SiteClock:
        return SiteClock(lambda: NOON.timestamp() + self.seconds, lambda: self.seconds)


def test_a_run_without_a_process_starts_when_there_is_one_again(tmp_path: Path) -> None:
    hour, runner = Hour(), JobList(is_available=False)
    runs = runs_of(StateDirectory.create(tmp_path / "state"), hour.site_clock(), runner)
    runs.request([requested(NOON)])
    assert runs.look() <= 1.0, "the next look comes soon"
    hour.seconds = 599.0
    runs.look()
    assert (runs.in_flight, runs.waiting) == ([], 1)
    runner.is_available = True
    runs.look()
    assert [(job.name, job.outcome) for job in runner.jobs] == [(str(run_id("noop-ncsa", NOON)), "")]


def test_a_run_that_never_gets_a_process_is_reported_as_broken(tmp_path: Path) -> None:
    hour, runner = Hour(), JobList(is_available=False)
    runs = runs_of(StateDirectory.create(tmp_path / "state"), hour.site_clock(), runner)
    runs.request([requested(NOON)])
    for hour.seconds in (0.0, 601.0, 632.0):
        runs.look()
    runner.is_available = True
    hour.seconds = 663.0
    runs.look()
    (job,) = runner.jobs
    assert (job.outcome, job.reason) == ("broken", "the run cannot start: no process")
    assert (runs.waiting, runs.in_flight) == (0, [])


def test_a_run_whose_report_finds_no_space_is_reported_as_broken_when_there_is_some(tmp_path: Path) -> None:
    """The directory of the results is a file meanwhile: not even root can write there."""
    state, hour, ends = StateDirectory.create(tmp_path / "state"), Hour(), queue.SimpleQueue[RunEnd]()
    runner = Runner(ROOT, ends.put)
    runs = runs_of(state, hour.site_clock(), runner)
    results = state.path / "results"
    results.rmdir()
    results.touch()
    runs.request([requested(NOON)])
    runs.look()
    runs.ended(ends.get(timeout=60))
    assert not runs.is_idle, "a report that the run is broken follows"
    runs.ended(ends.get(timeout=60))
    assert runs.is_idle, "that one cannot be written either"
    results.unlink()
    results.mkdir()
    hour.seconds = 31.0
    runs.look()
    runs.ended(ends.get(timeout=60))
    runner.close()
    (part,) = Spool(state.spool, "ncsa").batch()
    report = from_json(part.records[-1].body)
    assert (str(report.run), report.outcome) == (str(run_id("noop-ncsa", NOON)), "broken")
    assert report.reason.startswith("the process of the run could not write its report: the disk")


def test_requested_runs_beyond_those_of_an_hour_are_skipped_also_after_a_restart(tmp_path: Path) -> None:
    state, hour = StateDirectory.create(tmp_path / "state"), Hour()
    write_policy(state, '{"requests": {"per_hour": 1}}')
    outcomes = []
    for hour.seconds in (0.0, 1800.0, 3601.0):
        runner = JobList()
        runs = runs_of(state, hour.site_clock(), runner)
        runs.request([requested(NOON + timedelta(seconds=hour.seconds))])
        runs.look()
        outcomes += [(job.outcome, job.reason) for job in runner.jobs]
    refused = ("skipped", "policy: at most 1 requested runs an hour, 1 have started")
    assert outcomes == [("", ""), refused, ("", "")]


def test_slots_that_were_run_by_a_clock_ahead_are_run_again_at_their_time(tmp_path: Path) -> None:
    """Without the server's time the agent goes by the host's; the server refuses what ran before its slot."""
    hour, runner = Hour(50 * 60.0), JobList()
    clock = hour.site_clock()
    runs = runs_of(StateDirectory.create(tmp_path / "state"), clock, runner)
    runs.assign(parse(json.dumps(assignment(series(schedule="*/10 * * * *"))), "ncsa"))
    server_noon = NOON.timestamp()

    def slots_within(seconds: float) -> list[str]:
        runner.jobs.clear()
        until = hour.seconds + seconds
        while hour.seconds <= until:
            runs.look()
            for job in list(runner.jobs):
                runs.ended(RunEnd(job.name, 0, 0.0))
            hour.seconds += 30.0
        return [f"{job.assignment.slot:%H:%M}" for job in runner.jobs if not job.outcome]

    assert slots_within(11 * 60.0) == ["13:00"], "at ten past twelve"
    now = server_noon + hour.seconds - 50 * 60.0
    clock.add(ExchangeTimes(hour.seconds, now, now, hour.seconds))
    assert slots_within(60 * 60.0) == ["12:20", "12:30", "12:40", "12:50", "13:00", "13:10"]
