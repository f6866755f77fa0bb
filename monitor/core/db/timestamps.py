"""Convert between times and microseconds since 1970, UTC: the unit of numpy's ``datetime64[us]``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = 946_684_800_000_000  # PostgreSQL's binary epoch, 2000-01-01, in microseconds since 1970
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(time: datetime) -> int:
    """Convert *time*, which must have a time zone, to microseconds since 1970, UTC."""
    return (time - _UNIX_EPOCH) // timedelta(microseconds=1)


def moment(time: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC: the inverse of ``micros``."""
    return _UNIX_EPOCH + timedelta(microseconds=int(time))
