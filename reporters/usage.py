"""What a run uses at its resources: bytes of the copies that arrived, processor time of its jobs."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """What was used at one resource. A job's seconds count once for each processor that it asked for."""

    bytes_sent: int = 0
    bytes_received: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
            self.cpu_seconds + other.cpu_seconds,
        )


class Meter:
    """Counts while a run goes on. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counting = threading.Lock()
        self._copied: defaultdict[str, Usage] = defaultdict(Usage)
        self._jobs: list[tuple[str, JobMeter]] = []

    def copied(self, source: str, target: str, size_bytes: int) -> None:
        """Count a copy that arrived."""
        with self._counting:
            self._copied[source] += Usage(bytes_sent=size_bytes)
            self._copied[target] += Usage(bytes_received=size_bytes)

    def job(self, resource: str, cpus: int) -> JobMeter:
        """What counts for one job."""
        meter = JobMeter(cpus, self._clock)
        with self._counting:
            self._jobs.append((resource, meter))
        return meter

    def read(self) -> dict[str, Usage]:
        """What was used so far, by resource; those at which nothing was are left out."""
        with self._counting:
            used = defaultdict(Usage, self._copied)
            for resource, job in self._jobs:
                used[resource] += Usage(cpu_seconds=job.cpu_seconds)
        return {resource: usage for resource, usage in used.items() if usage != Usage()}


class JobMeter:
    """One job: it says itself how long it ran.

    Of one that does not, since it ended badly or nobody waited for it, that counts for which it was seen.
    """

    def __init__(self, cpus: int, clock: Callable[[], float]) -> None:
        self._cpus = cpus
        self._clock = clock
        self._began: float | None = None
        self._seconds: float | None = None

    def began(self) -> None:
        """It was seen to run."""
        self._began = self._clock()

    def ended(self, run_seconds: float | None = None) -> None:
        """It is over; *run_seconds* is what it says itself, None where it says nothing."""
        self._seconds = self._seen_seconds() if run_seconds is None else run_seconds

    @property
    def cpu_seconds(self) -> float:
        """So far."""
        return self._cpus * (self._seen_seconds() if self._seconds is None else self._seconds)

    def _seen_seconds(self) -> float:
        return 0.0 if self._began is None else self._clock() - self._began


def together(one: Mapping[str, Usage], other: Mapping[str, Usage]) -> dict[str, Usage]:
    """The sum, by resource."""
    return {name: one.get(name, Usage()) + other.get(name, Usage()) for name in {**one, **other}}


def amount(size_bytes: int) -> str:
    """SI, as in "1.2 MB"."""
    power = min(max(len(str(abs(size_bytes))) - 1, 0) // 3, 5)
    unit = ("bytes", "kB", "MB", "GB", "TB", "PB")[power]
    return f"{size_bytes} bytes" if power == 0 else f"{size_bytes / 1000**power:.1f} {unit}"
