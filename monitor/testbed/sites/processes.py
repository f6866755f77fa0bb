"""Killing everything that a session has started, by a mark in its environment.

A process group or a session does not do: a child may have left both. The mark is inherited by every child,
and children of the marked are taken too, so that one that has cleared its environment does not escape either.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 50  # whoever forks while it is being killed is found in the next round


def kill_marked(mark: str) -> None:
    """Kill every process with *mark* (``NAME=value``) in its environment, and their descendants."""
    for _ in range(_ROUNDS):
        victims = marked(mark)
        if not victims:
            return
        for pid in victims:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> set[int]:
    """The processes that live and have *mark* in their environment, and the descendants of these."""
    pids = [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 - twice as fast
    found = {pid for pid in pids if _has_mark(pid, mark.encode())} - {os.getpid()}
    return _with_descendants(found, pids) if found else found


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # it is gone, or somebody else's
        return False


def _with_descendants(found: set[int], pids: list[int]) -> set[int]:
    parents = {pid: parent for pid in pids if (parent := _parent(pid)) is not None}
    everyone = set(found)
    while more := {pid for pid, parent in parents.items() if parent in everyone} - everyone:
        everyone |= more
    return everyone


def _parent(pid: int) -> int | None:
    """The parent of a process that lives; None for a zombie, which needs no killing."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]  # the name in parentheses may hold anything
    return None if state == "Z" else int(parent)
