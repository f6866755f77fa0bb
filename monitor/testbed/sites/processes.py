"""Find and kill processes with a given variable in their environment, and the descendants of these processes.

Children can leave process groups and sessions, but they inherit the environment. A process with a cleared
environment is found as a descendant. A process that is just being executed shows no environment yet.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 50  # processes forked during a round are found in the next


def kill_with_variable(variable: str) -> None:
    """Kill every process with *variable* (``NAME=value``) in its environment, and its descendants."""
    for _ in range(_ROUNDS):
        victims = pids_with_variable(variable)
        if not victims:
            return
        for pid in victims:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def pids_with_variable(variable: str) -> set[int]:
    """Return the pids of live processes with *variable* (``NAME=value``), and of their descendants."""
    pids = [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 - twice as fast
    roots = {pid for pid in pids if _has_variable(pid, variable.encode())} - {os.getpid()}
    return _with_descendants(roots, pids) if roots else roots


def _has_variable(pid: int, variable: bytes) -> bool:
    try:
        return variable in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or belongs to another user
        return False


def _with_descendants(roots: set[int], pids: list[int]) -> set[int]:
    parents = {pid: parent for pid in pids if (parent := _parent(pid)) is not None}
    family = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _parent(pid: int) -> int | None:
    """Return the pid of the parent of a live process; None for an ended process or a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]  # the name in parentheses may contain anything
    return None if state == "Z" else int(parent)
