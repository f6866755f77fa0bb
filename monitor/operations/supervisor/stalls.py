"""Decide whether a service hangs: slowness is no hang, neither while it starts nor while it runs.

Evidence that it works is the answer of the liveness check, processor time of the service while it starts, and
that its main thread runs at all. Time without evidence counts in full only if the machine has processors,
memory and disks to spare, and the service does not compute.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

SILENT_SECONDS = 30.0  # a service that is up and does not answer hangs after this time
_MOST_STEP_SECONDS = 10.0  # what one step counts at most: the supervisor itself may have been suspended
_WORKING_SHARE = 0.02  # of a processor: a service that uses more is computing
_STARVED_RATE = 0.2  # of a second that counts while the machine is starved
_COMPUTING_RATE = 0.2  # while a service that is up does not answer because it computes
_STARVED_PERCENT = 40.0  # of the last ten seconds in which tasks waited, by the kernel's pressure files
_STARVED_LOAD = 2.0  # runnable tasks per processor, where the kernel has no such files


@dataclass(frozen=True)
class Signs:
    """What a look at a service shows.

    Attributes:
        at: time of the monotonic clock.
        answers: whether the liveness check succeeded; None if there is none.
        used_seconds: processor time of all processes of the service; None if unknown.
        main_nanoseconds: processor time of its main thread; None if unknown.
        is_starved: whether the machine lacks processors, memory or disks.
    """

    at: float
    answers: bool | None = None
    used_seconds: float | None = None
    main_nanoseconds: int | None = None
    is_starved: bool = False


@dataclass(frozen=True)
class Patience:
    """How long a service has given no evidence that it works, in seconds that count.

    Attributes:
        still_seconds: since the service last used processor time; for services that start.
        silent_seconds: since it last answered.
        asleep_seconds: since its main thread last ran.
    """

    last: Signs
    still_seconds: float = 0.0
    silent_seconds: float = 0.0
    asleep_seconds: float = 0.0

    def after(self, signs: Signs) -> Patience:
        """Return the patience after a look that shows *signs*."""
        elapsed = min(signs.at - self.last.at, _MOST_STEP_SECONDS)
        counted = elapsed * (_STARVED_RATE if signs.is_starved else 1.0)
        is_working = self._is_working(signs)
        silent = counted * (_COMPUTING_RATE if is_working else 1.0)
        has_run = signs.main_nanoseconds is None or signs.main_nanoseconds != self.last.main_nanoseconds
        return replace(
            self,
            last=signs,
            still_seconds=0.0 if is_working else self.still_seconds + counted,
            silent_seconds=self.silent_seconds + silent if signs.answers is False else 0.0,
            asleep_seconds=0.0 if has_run else self.asleep_seconds + counted,
        )

    def _is_working(self, signs: Signs) -> bool:
        if signs.used_seconds is None or self.last.used_seconds is None:
            return False
        # Less than before: a process of the service has ended.
        used = abs(signs.used_seconds - self.last.used_seconds)
        return used >= _WORKING_SHARE * (signs.at - self.last.at)

    def hang(self, asleep_seconds: float | None) -> str:
        """Return why a service that is up hangs, empty if it does not; see ``Service.asleep_seconds``."""
        if self.silent_seconds >= SILENT_SECONDS:
            return "hung: it did not answer its liveness check"
        if asleep_seconds is not None and self.asleep_seconds >= asleep_seconds:
            return f"hung: its main thread did not run for {asleep_seconds:g} s"
        return ""


def used_seconds(pids: list[int]) -> float:
    """Return the processor time of the processes *pids* that still run."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:  # ended
            continue
        ticks += sum(map(int, stat.rpartition(b")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main_nanoseconds(pid: int) -> int | None:
    """Return the processor time of the main thread of *pid*; None where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def is_starved() -> bool:
    """Return whether tasks of this machine wait for processors, memory or disks."""
    try:
        files = [Path("/proc/pressure", name).read_text(encoding="ascii") for name in ("cpu", "memory", "io")]
    except OSError:
        return os.getloadavg()[0] > _STARVED_LOAD * (os.cpu_count() or 1)
    return any(_waiting_percent(text) > _STARVED_PERCENT for text in files)


def _waiting_percent(pressure: str) -> float:
    """Return the share of the last ten seconds in *pressure*: ``some avg10=1.23 avg60=...``."""
    return float(pressure.partition("avg10=")[2].partition(" ")[0] or 0.0)
