"""Count the use of resources by a run: bytes of completed copies, CPU time of jobs."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ResourceUsage:
    """The use of one resource. A second of a job counts once for each processor that the job requested."""

    bytes_sent: int = 0
    bytes_received: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: ResourceUsage) -> ResourceUsage:
        return ResourceUsage(
            self.bytes_sent + other.bytes_sent,
            self.bytes_received + other.bytes_received,
            self.cpu_seconds + other.cpu_seconds,
        )


class UsageMeter:
    """Counts the usage of a run during the run. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counting = threading.Lock()
        self._copied: defaultdict[str, ResourceUsage] = defaultdict(ResourceUsage)
        self._jobs: list[tuple[str, JobMeter]] = []

    def copied(self, source: str, target: str, size_bytes: int) -> None:
        """Count a completed copy."""
        with self._counting:
            self._copied[source] += ResourceUsage(bytes_sent=size_bytes)
            self._copied[target] += ResourceUsage(bytes_received=size_bytes)

    def job(self, resource: str, cpus: int) -> JobMeter:
        """Return the meter of a new job on *cpus* processors."""
        meter = JobMeter(cpus, self._clock)
        with self._counting:
            self._jobs.append((resource, meter))
        return meter

    def read(self) -> dict[str, ResourceUsage]:
        """Return the usage so far by resource, without resources that were not used."""
        with self._counting:
            used = defaultdict(ResourceUsage, self._copied)
            for resource, job in self._jobs:
                used[resource] += ResourceUsage(cpu_seconds=job.cpu_seconds)
        return {resource: usage for resource, usage in used.items() if usage != ResourceUsage()}


class JobMeter:
    """The CPU time of one job.

    A job that passed reports its run time. For any other job, the time from ``began`` to ``ended`` counts.
    """

    def __init__(self, cpus: int, clock: Callable[[], float]) -> None:
        self._cpus = cpus
        self._clock = clock
        self._began: float | None = None
        self._seconds: float | None = None

    def began(self) -> None:
        """Note that the job runs now."""
        self._began = self._clock()

    def ended(self, run_seconds: float | None = None) -> None:
        """Note that the job is over; *run_seconds* is the run time that the job reported, or None."""
        self._seconds = self._seen_seconds() if run_seconds is None else run_seconds

    @property
    def cpu_seconds(self) -> float:
        """The seconds that the job has run so far, times its processors."""
        return self._cpus * (self._seen_seconds() if self._seconds is None else self._seconds)

    def _seen_seconds(self) -> float:
        return 0.0 if self._began is None else self._clock() - self._began


def added(first: Mapping[str, ResourceUsage], other: Mapping[str, ResourceUsage]) -> dict[str, ResourceUsage]:
    """Return the sum of two usages, by resource."""
    return {
        name: first.get(name, ResourceUsage()) + other.get(name, ResourceUsage())
        for name in {**first, **other}
    }


def format_bytes(size_bytes: int) -> str:
    """Format a size with an SI unit, such as "1.2 MB"."""
    power = min(max(len(str(abs(size_bytes))) - 1, 0) // 3, 5)
    unit = ("bytes", "kB", "MB", "GB", "TB", "PB")[power]
    return f"{size_bytes} bytes" if power == 0 else f"{size_bytes / 1000**power:.1f} {unit}"
