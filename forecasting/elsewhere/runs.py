"""Runs of an application, or of a replay of its calls: the seconds of input and output by class of calls."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forecasting.elsewhere.pairs import RunPair, run_pairs

_NORMAL = 1.4826  # standard deviation of a normal distribution / its median absolute deviation
_LEAST_FOR_MEDIANS = 5


@dataclass(frozen=True)
class IoTime:
    """What calls of one class took, and the bytes that they moved (None: unknown or none)."""

    seconds: float
    moved_bytes: float | None = None


@dataclass(frozen=True)
class IoRun:
    """One run. *classes* has the time of each class of calls: the mean over the tasks of the run."""

    started_at_seconds: float
    classes: Mapping[str, IoTime]

    @property
    def seconds(self) -> float:
        return math.fsum(time.seconds for time in self.classes.values())

    def moving(self, other: IoRun) -> IoRun:
        """Return this run as if it had moved the bytes of *other*: seconds are in proportion to the bytes.

        Classes whose bytes are unknown in either run stay.
        """
        return IoRun(
            self.started_at_seconds,
            {name: _moving(time, other.classes.get(name)) for name, time in self.classes.items()},
        )


@dataclass(frozen=True)
class SystemRuns:
    """The runs of an application and of its replay on the system *name*, in order of their starts."""

    name: str
    applications: Sequence[IoRun]
    replays: Sequence[IoRun]

    @cached_property
    def pairs(self) -> Sequence[RunPair]:
        """The runs of the application that have a replay near in time, with it."""
        return run_pairs(self.applications, self.replays)


def _moving(time: IoTime, other: IoTime | None) -> IoTime:
    if other is None or not time.moved_bytes or not other.moved_bytes:
        return time
    return IoTime(time.seconds * other.moved_bytes / time.moved_bytes, other.moved_bytes)


def scatter(logarithms: Sequence[float], *, medians_from: int = _LEAST_FOR_MEDIANS) -> float | None:
    """Return the standard deviation of *logarithms*; None for fewer than two.

    From *medians_from* values on it is that of their median absolute deviation. Runs that something disturbed
    are far off, and count little among many.
    """
    if len(logarithms) < 2:
        return None
    if len(logarithms) < medians_from:
        return statistics.stdev(logarithms)
    values = np.asarray(logarithms)
    return _NORMAL * float(np.median(np.abs(values - np.median(values))))
