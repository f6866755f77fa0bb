"""``approve``: what waits is shown as a difference; only what was shown is put in force."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reporters.remote import identity
from reporters.remote.assignment_store import ASK, AUTO, AssignmentStore
from reporters.remote.main import main
from reporters.remote.state_directory import PENDING_ASSIGNMENT, StateDirectory
from tests.reporters.needs import needs
from tests.reporters.remote.assignments import assignment, enrolled, series, sign

EVIL = assignment(series(limit_seconds=30), series("\x1b[2J", probe="login") | {"name": "more"}, version=8)


@pytest.fixture
def store(tmp_path: Path) -> AssignmentStore:
    """Return the assignments of a site where version 7 is in force and version 8 waits."""
    needs("openssl")
    state = StateDirectory.open(tmp_path)
    identity.save(state, enrolled(state))
    store = AssignmentStore(state, identity.load(state))
    store.offer(sign(assignment()), AUTO)
    store.offer(sign(EVIL), ASK)
    return store


def version(signed: Any) -> int | None:
    return None if signed is None else signed.assignment.version


def approve(store: AssignmentStore, tmp_path: Path, *argv: str) -> int:
    return main(["approve", f"--state={tmp_path}", *argv])


def test_the_difference_is_shown_and_put_in_force(
    store: AssignmentStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert approve(store, tmp_path, "--yes") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("version 7 is in force; version 8 of 2026-11-23T06:00:00.000000Z changes:\n")
    assert "~ series noop-ncsa\n    limit_seconds: 60.0 -> 30\n" in printed
    assert "+ series more\n" in printed
    assert '    schedule_name: "\\u001b[2J"\n' in printed
    assert printed.endswith(
        "version 8 is in force; no agent runs on this host; one on another host follows it within a minute\n"
    )
    assert (version(store.current()), store.pending()) == (8, None)
    assert approve(store, tmp_path, "--yes") == 0
    assert capsys.readouterr().out == "nothing waits for approval\n"


def test_a_version_that_does_not_wait_is_not_approved(
    store: AssignmentStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert approve(store, tmp_path, "--yes", "9") == 2
    assert "version 9 does not wait for approval; version 8 does" in capsys.readouterr().err
    assert (version(store.current()), version(store.pending())) == (7, 8)
    assert approve(store, tmp_path, "--yes", "8") == 0
    assert version(store.current()) == 8
    assert approve(store, tmp_path, "--yes", "8") == 2


def test_a_waiting_document_that_was_changed_at_the_site_is_refused(
    store: AssignmentStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / PENDING_ASSIGNMENT
    file.write_bytes(file.read_bytes().replace(b"limit_seconds", b"limit_secondz"))
    assert approve(store, tmp_path, "--yes") == 2
    assert "its signature is not the server's" in capsys.readouterr().err
    assert version(store.current()) == 7


@pytest.mark.parametrize(("answer", "in_force"), [(b"y\n", 8), (b"n\n", 7), (b"\n", 7)])
def test_the_operator_is_asked(
    store: AssignmentStore, tmp_path: Path, pyz: Path, answer: bytes, in_force: int
) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [sys.executable, str(pyz), "approve", f"--state={tmp_path}"],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert "Put version 8 in force? [y/N]" in done.stdout
    assert done.returncode == (0 if in_force == 8 else 2)
    assert version(store.current()) == in_force


def test_without_a_terminal_nothing_is_approved_silently(
    store: AssignmentStore, tmp_path: Path, pyz: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(pyz), "approve", f"--state={tmp_path}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("nothing was approved; confirm with --yes 8\n")
    assert version(store.current()) == 7


def test_a_site_that_is_not_enrolled_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approve", f"--state={tmp_path}"]) == 2
    assert "is not enrolled: run `enrol URL CODE` first" in capsys.readouterr().err
