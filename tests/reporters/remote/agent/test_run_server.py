"""The process that starts runs, where the host refuses it what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reporters.remote.agent.jobs import EndEarlierRuns, Message, RunJob, StopRun, parse_message
from reporters.report import from_json
from tests.reporters.remote.agent_process import ROOT
from tests.reporters.remote.policy.assignments import assignment

_WITHOUT_PROCESSES = """
import errno, os
from reporters.remote.agent.run_server import RunServer

def refuse():
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

RunServer(0, 1, refuse).serve()
"""

_WITH_EARLIER_RUNS = """
from reporters.remote.agent.run_server import RunServer
RunServer(0, 1, end_earlier=iter([333, 0, 0]).__next__).serve()
"""


def test_killed_processes_of_earlier_runs_are_announced_once() -> None:
    argv = [sys.executable, "-c", _WITH_EARLIER_RUNS]
    sent = EndEarlierRuns().to_line() * 3
    done = subprocess.run(argv, cwd=ROOT, input=sent, stdout=subprocess.PIPE, timeout=60, check=True)
    assert done.stdout.splitlines()[-1:] == [b'{"killed_processes": 333}']
    assert done.stdout.count(b"333") == 1


@pytest.mark.parametrize(
    ("outcome", "reason", "reported"),
    [
        ("", "", ("broken", "cannot start a process for the run: Resource temporarily unavailable")),
        ("skipped", "policy: no", ("skipped", "policy: no")),
    ],
)
def test_a_run_that_gets_no_process_is_reported_and_ends_no_other_run(
    tmp_path: Path, outcome: str, reason: str, reported: tuple[str, str]
) -> None:
    jobs = [RunJob(name, assignment(), tmp_path / name, outcome, reason) for name in ("first", "second")]
    sent = b"".join(job.to_line() for job in jobs)
    argv = [sys.executable, "-c", _WITHOUT_PROCESSES]
    done = subprocess.run(argv, cwd=ROOT, input=sent, stdout=subprocess.PIPE, timeout=60, check=True)
    ended = [json.loads(line).get("run") for line in done.stdout.splitlines()]
    assert [run for run in ended if run] == ["first", "second"]
    for job in jobs:
        report = from_json(job.result.read_bytes())
        assert (report.outcome, report.reason) == reported


@pytest.mark.parametrize(
    "message",
    [
        RunJob("a", replace(assignment(), max_load1=2.5, max_file_bytes=7), Path("/a b/c.report")),
        RunJob("b", assignment(), Path("/nö"), "skipped", "policy: one\nof two"),
        StopRun("b", 15),
        EndEarlierRuns(),
    ],
)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    line = message.to_line()
    assert line.count(b"\n") == 1
    assert parse_message(line) == message
