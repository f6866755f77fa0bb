"""The programs that one run starts at the reporter: tagged, limited, counted, and ended with the run.

A guardian (``guardian.py``) ends the processes of a program, and nothing escapes it while it lives. A killed
guardian takes the program with it, but not processes that left the program's tree; the reporter finds these
by a tag in their environment as soon as the guardian is gone. If the reporter is killed at the same time, the
next reporter of the same user finds them at its start. Where the reporter's control group is delegated, the
run has a scope there, which no process can leave. A *survivor* is a process that had to be killed by SIGKILL.

Limits apply to the programs of the local shell: CPU seconds of each process, so that a process that escapes
everything ends some day; optionally the size of a file; no core dumps. The number of processes has no limit:
the kernel counts all processes of the user, so a limit would hit the user's other work.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reporters import cgroup, tagged_processes

try:
    import resource
except ImportError:  # no limits on such systems
    resource = None  # type: ignore[assignment]

_ENDED = "ended "
_first_calls = threading.Semaphore(1)  # taken by the first call of ``end_earlier_lives_once``


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of each process of a program; None: no limit."""

    cpu_seconds: int | None = None
    file_bytes: int | None = None

    def apply(self, pid: int) -> None:
        """Limit *pid* and what it will start; never raises a limit. Linux only."""
        if not hasattr(resource, "prlimit"):
            return
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_CPU: self.cpu_seconds,
            resource.RLIMIT_FSIZE: self.file_bytes,
        }
        for kind, limit in wanted.items():
            if limit is not None:
                with contextlib.suppress(OSError, ValueError):
                    resource.prlimit(pid, kind, _lower(limit, resource.prlimit(pid, kind)))


def _lower(limit: int, current: tuple[int, int]) -> tuple[int, int]:
    """Return the soft and the hard limit: *limit*, or those of *current* that are lower."""
    soft, hard = (limit if old == resource.RLIM_INFINITY else min(limit, old) for old in current)
    return soft, hard


class Containment:
    """The processes of one run at the reporter's host. Thread-safe.

    *group* is the directory of a control group in which the run gets a scope, if the user may make one there.
    """

    def __init__(self, limits: ProcessLimits = ProcessLimits(), group: Path | None = None) -> None:
        self._limits = limits
        self._group = group
        self._name = f"{tagged_processes.life()}.{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._has_begun = False
        self._scope: cgroup.ProcessScope | None = None
        self._guardians: set[int] = set()
        self._survivors = 0

    def tag(self) -> str:
        """Return a new tag for one program."""
        return f"{self._name}.{next(self._numbers)}"

    def adopt(self, pid: int, *, limited: bool) -> None:
        """Contain the guardian *pid*, which has started nothing yet; *limited*: with the limits."""
        with self._lock:
            if not self._has_begun:
                self._scope = cgroup.open_scope(self._name, self._group)
                self._has_begun = True
            self._guardians.add(pid)
        if self._scope is not None:
            self._scope.add(pid)
        if limited:
            self._limits.apply(pid)

    def settle(self, tag: str, status: str) -> None:
        """Count the survivors of the program with *tag*, whose guardian is gone and has written *status*.

        Kills the processes of the program if the guardian did not finish its work.
        """
        last = status.rstrip("\n").rpartition("\n")[2]
        if last.startswith(_ENDED):
            count = int(last[len(_ENDED) :])
        else:
            count = tagged_processes.kill_tagged(lambda other: other == tag)
        with self._lock:
            self._survivors += count

    def end(self) -> tuple[int, float | None]:
        """Kill the processes of the run that are left; return the survivors, and the scope's CPU seconds.

        Call it when all programs have ended; the run starts no more of them.
        """
        cpu_seconds = None
        if self._scope is not None:
            left = len(self._scope.kill() - self._guardians)  # a guardian may be about to exit
            cpu_seconds = self._scope.cpu_seconds()
            self._scope.remove()
            with self._lock:
                self._survivors += left
        return self._survivors, cpu_seconds


def tagged(environment: Mapping[str, str] | None, tag: str) -> dict[str, str]:
    """Return *environment*, or that of the reporter, with *tag*."""
    return {**(os.environ if environment is None else environment), tagged_processes.VARIABLE: tag}


def has_earlier_lives() -> bool:
    """Return whether ``end_earlier_lives`` may find something; takes milliseconds and kills nothing."""
    scopes = cgroup.scopes_in(cgroup.own_group())
    return any(_is_of_earlier_life(name) for name, _ in scopes) or tagged_processes.is_any_tagged(
        _is_of_earlier_life
    )


def end_earlier_lives_once() -> int:
    """Call ``end_earlier_lives`` unless this process, or the one that it was forked from, has done so.

    Return how many processes this call has killed.
    """
    return end_earlier_lives() if _first_calls.acquire(blocking=False) else 0


def end_earlier_lives() -> int:
    """Kill the processes of runs whose reporter has ended, also by SIGKILL; return how many were killed."""
    count = 0
    for name, scope in cgroup.scopes_in(cgroup.own_group()):
        if _is_of_earlier_life(name):
            count += len(scope.kill())
            scope.remove()
    return count + tagged_processes.kill_tagged(_is_of_earlier_life)


def _is_of_earlier_life(name: str) -> bool:
    """Return whether the reporter that made *name*, a tag or the name of a scope, has ended."""
    return tagged_processes.is_over(name.partition(".")[0])
