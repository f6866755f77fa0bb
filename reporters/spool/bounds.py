"""The bounds of a spool, and what has to be dropped to keep them: the oldest segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Callable

from reporters.spool.chain_view import LONG_AGO, ChainView, SegmentView


@dataclass(frozen=True)
class Bounds:
    """The largest size of a spool, and the largest age of an undelivered record.

    Both are kept by whole segments, so a record may live an hour longer, and a spool may be larger by a
    segment for each writer.
    """

    most_bytes: int = 512 * 1024 * 1024
    most_age_seconds: float = 35 * 86400.0


@dataclass(frozen=True)
class Excess:
    """A segment whose reports have to be dropped."""

    view: ChainView
    segment: SegmentView
    reason: str


def excess(
    views: Iterable[ChainView],
    bounds: Bounds,
    now: datetime,
    *,
    room_bytes: int,
    is_dead: Callable[[ChainView], bool],
) -> list[Excess]:
    """Return the segments to drop so that *room_bytes* more fit into *bounds*, the oldest first.

    The last segment of a chain is dropped only if its writer is dead.
    """
    chains = list(views)
    too_many = sum(view.bytes for view in chains) + room_bytes - bounds.most_bytes
    oldest_allowed = now - timedelta(seconds=min(bounds.most_age_seconds, 1e9))
    found = []
    for ended_at, view, segment in sorted(_ended(chains), key=lambda each: each[0]):
        is_old = LONG_AGO < ended_at < oldest_allowed
        if (too_many <= 0 and not is_old) or view.is_done(segment):
            continue
        if segment is view.segments[-1] and not is_dead(view):
            continue
        age_days = bounds.most_age_seconds / 86400
        reason = (
            f"older than {age_days:g} days" if is_old else f"the spool is full: {bounds.most_bytes} bytes"
        )
        found.append(Excess(view, segment, reason))
        too_many -= segment.size
    return found


def _ended(chains: Iterable[ChainView]) -> list[tuple[datetime, ChainView, SegmentView]]:
    """Return each segment with the time of its end, as far as it is known."""
    return [
        (following.created_at or segment.created_at or LONG_AGO, view, segment)
        for view in chains
        for segment, following in zip(view.segments, [*view.segments[1:], *view.segments[-1:]])
    ]
