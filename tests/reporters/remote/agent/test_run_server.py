"""The process that starts runs, where the host refuses it what it needs."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from reporters.remote.agent.jobs import LENGTH_BYTES, RunJob
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
    messages = [pickle.dumps(job) for job in jobs]
    sent = b"".join(len(message).to_bytes(LENGTH_BYTES, "big") + message for message in messages)
    argv = [sys.executable, "-c", _WITHOUT_PROCESSES]
    done = subprocess.run(argv, cwd=ROOT, input=sent, stdout=subprocess.PIPE, timeout=60, check=True)
    assert [json.loads(line)["run"] for line in done.stdout.splitlines()] == ["first", "second"]
    for job in jobs:
        report = from_json(job.result.read_bytes())
        assert (report.outcome, report.reason) == reported
