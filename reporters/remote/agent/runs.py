"""The runs of the agent: when they are due, whether they may start, and what becomes of their reports.

All methods are called by the main thread. Each run, and each report of a run that did not take place, is a
job of the runner; its result is a file in ``results/``, which stays until the report is in the spool.
"""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from reporters.config import Assignment
from reporters.remote.agent import cursor, history
from reporters.remote.agent.admission import (
    ROOM_WAIT,
    FailedStart,
    LeaderEnd,
    SiteRun,
    SiteState,
    SiteVerdict,
    judge,
)
from reporters.remote.agent.clock_correction import corrected
from reporters.remote.agent.cursor import Cursor, CursorFile
from reporters.remote.agent.gate import PolicyGate
from reporters.remote.agent.jobs import UNWRITTEN, RunJob
from reporters.remote.agent.notices import ERROR, WARNING, Notices
from reporters.remote.agent.runner import RunEnd, Runner, RunnerUnavailable
from reporters.remote.agent.timetable import Timetable
from reporters.remote.agent.unreported import MOST, UnreportedRun, UnreportedRuns
from reporters.remote.assignment import SiteAssignment
from reporters.remote.clock import SiteClock
from reporters.remote.policy.site_policy import SitePolicy
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import MalformedReport, Report, ReportError, from_json, run_id
from reporters.spool.files import SpoolError, sync
from reporters.spool.spool import Spool

LOOK_SECONDS = 15.0  # a jump of the clock is noticed within this time
_KEPT_ENDS = 20_000  # of leaders' runs
_MARGIN_SECONDS = 120.0  # for a run that exceeds its own limits
_CLEANUP_SECONDS = 60.0
_SWEEP_SECONDS = 30.0
_REPORTS_AT_ONCE = 20
_WRONG_CLOCK = timedelta(minutes=5)  # the server refuses runs that began so long before their slots
SUFFIX = ".report"


@dataclass(frozen=True)
class RunRequest:
    """A run that the server asks for; not started after *expires_at*."""

    run: str
    series: str
    slot: datetime
    expires_at: datetime


@dataclass
class _InFlight:
    """A job of the runner. *outcome* and *reason* are those of ``RunJob``; *until* is by the steady clock."""

    run: SiteRun
    assignment: Assignment
    until: float
    outcome: str
    reason: str
    why_stopped: str = ""


class Runs:
    """Runs the series of an assignment. *spooled* is called when a report has been spooled.

    Raises:
        StateError: the directory for the reports of runs cannot be made, or the cursor cannot be read.
    """

    def __init__(
        self,
        state: StateDirectory,
        clock: SiteClock,
        gate: PolicyGate,
        spool: Spool,
        runner: Runner,
        notices: Notices,
        spooled: Callable[[], None],
    ) -> None:
        self._state, self._clock, self._gate, self._spool = state, clock, gate, spool
        self._runner, self._notices, self._spooled = runner, notices, spooled
        self._results = state.path / "results"
        try:
            self._results.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot make {self._results}: {error.strerror}") from None
        self._assignment: SiteAssignment | None = None
        self._timetable: Timetable | None = None
        self._cursor_file = CursorFile(state)
        kept = cursor.read(state)
        self._cursor = kept.time if kept else clock.now()
        self._requests: dict[str, datetime] = dict(kept.requests) if kept else {}
        self._waiting: deque[SiteRun] = deque()
        self._in_flight: dict[str, _InFlight] = {}
        self._ends: dict[tuple[str, datetime], LeaderEnd] = {}
        self._unreported = UnreportedRuns()
        self._is_stopping = False
        self._swept_at = -_SWEEP_SECONDS

    @property
    def in_flight(self) -> list[str]:
        """The runs that are running."""
        return [name for name, job in self._in_flight.items() if not job.outcome]

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no job is in flight."""
        return not self._in_flight

    def assign(self, assignment: SiteAssignment | None) -> None:
        """Work by *assignment* from now on; runs of series that it lacks no longer wait."""
        self._assignment = assignment
        if assignment is None:
            self._timetable = None
            self._waiting.clear()
            return
        self._timetable = Timetable(assignment, self._cursor, lambda text: self._notices.add(WARNING, text))
        present = [run for run in self._waiting if run.series.name in assignment.series]
        self._waiting = deque(replace(run, series=assignment.series[run.series.name]) for run in present)

    def request(self, requests: Iterable[RunRequest]) -> None:
        """Let the requested runs wait for their start, each once."""
        now = self._clock.now()
        present = {str(run_id(run.series.name, run.slot)) for run in self._waiting} | self._in_flight.keys()
        for one in requests:
            if one.run in self._requests or one.run in present or one.expires_at <= now:
                continue
            series = self._assignment.series.get(one.series) if self._assignment else None
            if series is None or str(run_id(one.series, one.slot)) != one.run:
                self._notices.add(
                    WARNING, f"ignored the request of a run of {one.series}: it is not assigned"
                )
            else:
                self._waiting.append(SiteRun(series, one.slot, now, one.expires_at))

    def look(self) -> float:
        """Start what is due; return the seconds until the next look."""
        self._runner.rest()
        self._runner.end_earlier_runs()
        self._sweep()
        self._stop_overdue()
        if self._assignment is None or self._timetable is None or self._is_stopping:
            return LOOK_SECONDS
        now = self._clock.now()
        self._trust_clock(now)
        self._collect_due(self._timetable, now)
        self._start_waiting(self._assignment, now)
        times = [self._timetable.next_slot(), *(run.due_at for run in self._waiting if run.due_at > now)]
        next_seconds = [(time - now).total_seconds() for time in times if time is not None]
        is_urgent = any(run.due_at <= now for run in self._waiting)
        return max(0.0, min([1.0 if is_urgent else LOOK_SECONDS, *next_seconds]))

    def ended(self, end: RunEnd) -> None:
        """Spool the report of a run whose process has ended."""
        job = self._in_flight.pop(end.name, None)
        if job is None:
            return
        if not self._spool_result(self._file(end.name), end.cpu_seconds):
            self._report_again(end, job)
        elif job.outcome:
            self._report_unreported(_REPORTS_AT_ONCE)
        if not job.outcome:
            key = (job.run.series.name, job.run.slot)
            self._ends[key] = LeaderEnd(self._clock.now(), has_run=not job.why_stopped)
            while len(self._ends) > _KEPT_ENDS:
                del self._ends[next(iter(self._ends))]

    def stop(self, why: str) -> None:
        """Start no more runs; end those that run, which are reported as skipped because of *why*."""
        self._is_stopping = True
        self._waiting.clear()
        for name, job in self._in_flight.items():
            if not job.outcome:
                job.why_stopped = why
                self._runner.stop(name)

    def resume(self) -> None:
        """Start runs again after ``stop``, from now on."""
        self._is_stopping = False

    def close(self) -> None:
        """Keep the counters, and tell how many runs get no report because none could be written until now."""
        self._keep_counters()
        count = len(self._unreported) + self._unreported.given_up
        if count:
            self._notices.add(
                ERROR, f"{count} runs have no report: it could not be written; the ledger has them as missed"
            )

    def _trust_clock(self, now: datetime) -> None:
        """Set the cursor back if the server's time proves that it is in the future."""
        if self._timetable is not None and self._clock.is_known and self._cursor - now > _WRONG_CLOCK:
            self._notices.add(WARNING, f"the clock was wrong: slots are handled from {now:%Y-%m-%d %H:%M} on")
            self._timetable.set_back(now)
            self._cursor = now

    def _collect_due(self, timetable: Timetable, now: datetime) -> None:
        due, passed_over = timetable.due(now)
        if passed_over is not None:
            after, until = (f"{time:%Y-%m-%d %H:%M:%S}" for time in (passed_over.after, passed_over.until))
            text = f"slots from {after} to {until} UTC were not run"
            self._notices.add(WARNING, f"{text}: the agent did not run, or the clock jumped")
        is_new = bool(due) or passed_over is not None
        self._cursor = timetable.cursor
        self._waiting.extend(SiteRun(one.series, one.slot, one.due_at) for one in due)
        if is_new:
            self._keep_cursor()  # before any starts: a slot is run at most once

    def _keep_cursor(self, *, counts_request: bool = False) -> None:
        now = self._clock.now()
        self._requests = {run: until for run, until in self._requests.items() if until > now}
        try:
            self._cursor_file.keep(Cursor(self._cursor, self._requests), now)
            if counts_request:
                self._gate.count_request(self._clock.wall_now())
        except StateError as error:
            self._notices.add(ERROR, str(error))

    def _start_waiting(self, assignment: SiteAssignment, now: datetime) -> None:
        for run in [run for run in self._waiting if run.due_at <= now]:
            if run.failed_start is not None and run.failed_start.until <= now:
                self._waiting.remove(run)
                self._report_unstarted(assignment, run, run.failed_start.reason)
                continue
            if run.expires_at is not None and run.expires_at <= now:
                self._waiting.remove(run)
                continue
            policy = self._gate.policy  # one reading: an edit between two would start a run without its caps
            verdict = judge(run, self._site_state(assignment, now, policy))
            if verdict.is_start or verdict.reason:
                self._waiting.remove(run)
                self._begin(assignment, run, verdict, policy)

    def _site_state(self, assignment: SiteAssignment, now: datetime, policy: SitePolicy) -> SiteState:
        running = [job.run for job in self._in_flight.values() if not job.outcome]

        def refusal(run: SiteRun) -> str:
            wanted, wall_now = assignment.run_of(run.series, run.slot), self._clock.wall_now()
            return self._gate.admit(
                wanted,
                policy,
                running_runs=len(running),
                now=wall_now,
                is_requested=run.is_requested and run.failed_start is None,  # that one has been counted
            ).reason

        capacity = policy.concurrent_runs(assignment.capacity)
        return SiteState(assignment, now, running, capacity, self._ends, refusal)

    def _begin(
        self, assignment: SiteAssignment, run: SiteRun, verdict: SiteVerdict, policy: SitePolicy
    ) -> None:
        wanted = assignment.run_of(run.series, run.slot)
        if run.expires_at is not None:
            self._requests[str(run_id(run.series.name, run.slot))] = run.expires_at
            is_new = verdict.is_start and run.failed_start is None
            self._keep_cursor(counts_request=is_new)  # before it starts: it is run at most once
        outcome = "" if verdict.is_start else "skipped"
        if verdict.is_start:
            kept = replace(wanted, state_directory=str(self._state.path / "series"))
            wanted = policy.constrained(kept)
        else:
            self._ends[run.series.name, run.slot] = LeaderEnd(self._clock.now(), has_run=False)
        self._submit(run, wanted, outcome, verdict.reason)

    def _submit(self, run: SiteRun, wanted: Assignment, outcome: str, reason: str) -> None:
        name = str(run_id(wanted.series, wanted.slot))
        limit = (wanted.warm_up_runs + 1) * (wanted.limit_seconds + _CLEANUP_SECONDS) + _MARGIN_SECONDS
        self._in_flight[name] = _InFlight(run, wanted, self._clock.steady() + limit, outcome, reason)
        try:
            self._runner.start(RunJob(name, wanted, self._file(name), outcome, reason))
        except RunnerUnavailable as error:
            del self._in_flight[name]
            self._notices.add(ERROR, f"cannot run {wanted.series} now: {error}")
            if outcome:
                self._report_later(UnreportedRun(run, wanted, outcome, reason))
            else:
                self._start_again(run, str(error))

    def _start_again(self, run: SiteRun, why: str) -> None:
        """Let *run* wait for another start, as long as a run may wait for room; then it is broken."""
        until = run.expires_at or self._clock.now() + ROOM_WAIT
        failed = replace(run.failed_start, reason=why) if run.failed_start else FailedStart(until, why)
        self._waiting.append(replace(run, failed_start=failed))

    def _report_unstarted(self, assignment: SiteAssignment, run: SiteRun, why: str) -> None:
        self._ends[run.series.name, run.slot] = LeaderEnd(self._clock.now(), has_run=False)
        self._submit(run, assignment.run_of(run.series, run.slot), "broken", f"the run cannot start: {why}")

    def _report_later(self, run: UnreportedRun) -> None:
        self._unreported.add(run)
        if self._unreported.given_up:
            self._notices.add(
                ERROR,
                f"more than {MOST} reports cannot be written: the ledger will have the others as missed",
            )

    def _report_unreported(self, most: int) -> None:
        """Try to write reports that could not be written before, with at most *most* in flight."""
        in_flight = sum(1 for job in self._in_flight.values() if job.outcome)
        for each in self._unreported.take(most - in_flight):
            self._submit(each.run, each.assignment, each.outcome, each.reason)

    def _report_again(self, end: RunEnd, job: _InFlight) -> None:
        """Have a report written for a run that left none, or whose report could not be written."""
        if job.outcome:
            text = f"cannot write a report of {job.run.series.name}: its process {end.how}"
            self._notices.add(ERROR, text)
            if end.status is None or end.status < 0 or end.status == UNWRITTEN:
                self._report_later(UnreportedRun(job.run, job.assignment, job.outcome, job.reason))
            return
        if job.why_stopped:
            self._submit(job.run, job.assignment, "skipped", job.why_stopped)
            return
        how = end.how
        self._notices.add(WARNING, f"the run of {job.run.series.name} left no report: its process {how}")
        self._submit(job.run, job.assignment, "broken", f"the process of the run {how}")

    def _stop_overdue(self) -> None:
        now = self._clock.steady()
        for name, job in self._in_flight.items():
            if now > job.until:
                number = signal.SIGKILL if job.why_stopped else signal.SIGTERM
                job.why_stopped = job.why_stopped or "the run did not end long after its limit"
                job.until = now + 2 * _CLEANUP_SECONDS
                self._runner.stop(name, number)

    def _file(self, name: str) -> Path:
        return self._results / f"{name}{SUFFIX}"

    def _sweep(self) -> None:
        """Spool reports that could not be spooled before, or that an agent left that was killed."""
        if self._clock.steady() - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = self._clock.steady()
        for file in sorted(self._results.glob(f"*{SUFFIX}")):
            if file.name.removesuffix(SUFFIX) not in self._in_flight:
                self._spool_result(file, 0.0)
        self._report_unreported(1)  # its success brings the others
        self._keep_counters()

    def _spool_result(self, file: Path, cpu_seconds: float) -> bool:
        """Spool the report in *file* and remove it; return False if there is none."""
        try:
            data = file.read_bytes()
            report = corrected(from_json(data), self._clock.offset(), self._clock.server_now())
        except FileNotFoundError:
            return False
        except OSError as error:
            self._notices.add(ERROR, f"cannot read the report in {file}: {error.strerror}")
            return False
        except ReportError as error:
            self._notices.add(ERROR, f"the report in {file} is damaged and set aside: {error}")
            with contextlib.suppress(OSError):  # of a full disk: tried again
                file.replace(file.with_suffix(".damaged"))
            return False
        resources = [] if self._assignment is None else self._assignment.resources.values()
        try:
            self._spool.append(self._gate.disclosed(report, resources))
            file.unlink()
        except (SpoolError, OSError, MalformedReport) as error:
            self._notices.add(ERROR, f"cannot spool a report, it stays in {file}: {error}")
            with contextlib.suppress(OSError):  # the run has not flushed it
                sync(file)
                sync(self._results)
            return True
        self._count(report, cpu_seconds)
        with contextlib.suppress(OSError):  # of a full disk: the report itself is safe
            history.add(self._state.path, report)
        self._spooled()
        return True

    def _count(self, report: Report, cpu_seconds: float) -> None:
        try:
            self._gate.count(report, process_cpu_seconds=cpu_seconds, now=self._clock.wall_now())
        except StateError as error:
            self._notices.add(ERROR, str(error))

    def _keep_counters(self) -> None:
        try:
            self._gate.keep_counters()
        except StateError as error:
            self._notices.add(ERROR, str(error))
