"""Runs of an application and of the replay of its calls, paired with those that are nearest in time.

Each has the seconds of input and output by class of calls. Paired runs met the same conditions.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

DAY_SECONDS = 86_400.0
FRESH_GAPS = 10  # times the mean time between runs
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
class RunPair:
    """A run of an application, and the replay on the same system that moves as many bytes."""

    application: IoRun
    replay: IoRun


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


def run_pairs(applications: Sequence[IoRun], replays: Sequence[IoRun]) -> list[RunPair]:
    """Return each run of *applications* with its nearest replay on the same system, as if of the same bytes.

    Both are in order of their starts. Runs farther from any replay than a day and than the mean time between
    replays are left out, and so are runs that took no time. If two replays are equally near, the earlier one
    counts.
    """
    timed = [run for run in replays if run.seconds > 0.0]
    limit = max(DAY_SECONDS, _mean_gap(timed))
    found = []
    for run in applications:
        replay = nearest(timed, run.started_at_seconds)
        if not replay or abs(replay.started_at_seconds - run.started_at_seconds) > limit:
            continue
        if run.seconds > 0.0:
            found.append(RunPair(run, replay.moving(run)))
    return found


def nearest(runs: Sequence[IoRun], seconds: float) -> IoRun | None:
    """Return the run of *runs*, which are in order of their starts, that started nearest to *seconds*."""
    place = bisect_left(runs, seconds, key=lambda run: run.started_at_seconds)
    around = runs[max(place - 1, 0) : place + 1]
    return min(around, key=lambda run: abs(run.started_at_seconds - seconds), default=None)


def fresh_until(runs: Sequence[IoRun]) -> float:
    """Return until when the newest of *runs* counts as fresh, as seconds: ten mean gaps, at least a day."""
    return runs[-1].started_at_seconds + max(DAY_SECONDS, FRESH_GAPS * _mean_gap(runs))


def _mean_gap(runs: Sequence[IoRun]) -> float:
    if len(runs) < 2:
        return 0.0
    return (runs[-1].started_at_seconds - runs[0].started_at_seconds) / (len(runs) - 1)


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
