"""Match change points with the changes of a series that were recorded. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class RecordedChange:
    """A change that may have changed durations: its time, its kind in one word, and what changed."""

    time: datetime
    kind: str
    text: str


@dataclass(frozen=True)
class ChangePoint:
    """A change of the level of a duration, in seconds.

    *last_before* is the slot of the last run at the level *before*, *first_after* of the first at *after*.
    """

    last_before: datetime
    first_after: datetime
    before: float
    after: float


@dataclass(frozen=True)
class MatchedChange:
    """A change point with the recorded changes that may explain it, the nearest first."""

    point: ChangePoint
    recorded: Sequence[RecordedChange]


def matched(
    points: Iterable[ChangePoint], changes: Sequence[RecordedChange], tolerance: timedelta
) -> list[MatchedChange]:
    """Match each of *points* with the *changes* between its two runs, or at most *tolerance* from them.

    Where a level begins is known to within a few runs only. A change may match several points.
    """
    return [
        MatchedChange(
            point,
            sorted(
                (change for change in changes if distance(point, change) <= tolerance),
                key=lambda change: (distance(point, change), change.time, change.kind, change.text),
            ),
        )
        for point in points
    ]


def distance(point: ChangePoint, change: RecordedChange) -> timedelta:
    """Return the time from *change* to the interval between the two runs of *point*; 0 within it."""
    return max(point.last_before - change.time, change.time - point.first_after, timedelta())
