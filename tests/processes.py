"""Processes that a test started, seen from outside."""

from __future__ import annotations

from pathlib import Path

from tests.waiting import eventually


def is_gone(pid: int) -> bool:
    """Whether *pid* has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while the file is read
        return True


def pid_in(file: Path) -> int:
    """Wait until *file* exists; return the number in it."""
    assert eventually(file.exists)
    return int(file.read_text())
