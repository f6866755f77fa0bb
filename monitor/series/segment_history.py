"""When a series became another: the beginnings of its segments, and its returns to earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from monitor.models import Segment
from monitor.series.segment_diff import SegmentChange, segment_changes


@dataclass(frozen=True)
class Boundary:
    """A run of another segment than the runs before it: the first of *segment*, or the first again."""

    time: datetime
    segment: Segment
    changes: Sequence[SegmentChange]


@dataclass(frozen=True)
class SegmentStart:
    """From the run at *time* on it was *segment*; *changes* are none for the first."""

    time: datetime
    segment: Segment
    changes: Sequence[SegmentChange]

    @property
    def is_return(self) -> bool:
        return self.time > self.segment.began_at


def segment_starts(segments: Sequence[Segment], boundaries: Sequence[Boundary]) -> list[SegmentStart]:
    """Every beginning of one of *segments*, which are in order of time, and those of *boundaries*, which know
    what was run just before; newest first."""
    pairs = [(None, one) for one in segments[:1]] + list(pairwise(segments))
    begun = [SegmentStart(new.began_at, new, segment_changes(old, new) if old else ()) for old, new in pairs]
    crossed = [SegmentStart(one.time, one.segment, one.changes) for one in boundaries]
    turns = {(turn.time, turn.segment.pk): turn for turn in (*begun, *crossed)}
    return sorted(turns.values(), key=lambda turn: turn.time, reverse=True)
