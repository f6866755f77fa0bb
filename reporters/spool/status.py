"""The state of a spool."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reporters.spool.chain_view import ChainView
from reporters.spool.chains import Chains
from reporters.spool.run_index import time_of


@dataclass(frozen=True)
class SpoolStatus:
    """The state of a spool; *bytes* are those of its segment files."""

    records: int  # that need delivery
    bytes: int
    oldest_at: datetime | None  # of the oldest of them
    dropped_records: int  # ever


def status_of(chains: Chains) -> SpoolStatus:
    """Return the state of the spool with *chains*, which have been refreshed.

    Raises:
        OSError: a segment cannot be read.
    """
    views = list(chains.views.values())
    return SpoolStatus(
        records=sum(view.pending_count() for view in views),
        bytes=sum(view.bytes for view in views),
        oldest_at=min((time for time in map(_oldest_at, views) if time), default=None),
        dropped_records=chains.dropped_records(),
    )


def _oldest_at(view: ChainView) -> datetime | None:
    segment = view.oldest()
    if segment is None:
        return None
    records = view.load(segment)
    view.unload(segment)
    return (time_of(records[0]) if records else None) or segment.created_at
