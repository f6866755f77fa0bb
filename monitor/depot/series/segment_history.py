"""List when a series changed: the starts of its segments, and its returns to earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from monitor.depot.series.segment_diff import SegmentChange, segment_changes
from monitor.models import Segment


@dataclass(frozen=True)
class Boundary:
    """A run that belongs to another segment than the run before it.

    *time* is the slot of the run, *segment* the segment of the run; *changes* are the differences between the
    two segments.
    """

    time: datetime
    segment: Segment
    changes: Sequence[SegmentChange]


@dataclass(frozen=True)
class SegmentStart:
    """The *time* from which on the series ran *segment*; the first start has no *changes*."""

    time: datetime
    segment: Segment
    changes: Sequence[SegmentChange]

    @property
    def is_return(self) -> bool:
        return self.time > self.segment.began_at


def segment_starts(segments: Sequence[Segment], boundaries: Sequence[Boundary]) -> list[SegmentStart]:
    """Return the starts of segments, and the returns to earlier segments, newest first.

    *segments* are sorted by time. If a segment starts at a boundary, the changes of the boundary are listed:
    they are relative to the segment that was run just before.
    """
    pairs = [(None, segment) for segment in segments[:1]] + list(pairwise(segments))
    starts = [SegmentStart(new.began_at, new, segment_changes(old, new) if old else ()) for old, new in pairs]
    starts += [SegmentStart(boundary.time, boundary.segment, boundary.changes) for boundary in boundaries]
    unique = {(start.time, start.segment.pk): start for start in starts}
    return sorted(unique.values(), key=lambda start: start.time, reverse=True)
