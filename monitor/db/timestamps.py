"""Times as PostgreSQL sends them in binary, and as arrays have them: microseconds since 1970, UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = 946_684_800_000_000  # PostgreSQL counts from 2000-01-01: that, in microseconds since 1970
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(time: datetime) -> int:
    """Convert *time*, which has a zone, to microseconds since 1970: the number of ``datetime64[us]``."""
    return (time - _UNIX_EPOCH) // timedelta(microseconds=1)


def moment(time: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC: the inverse of ``micros``."""
    return _UNIX_EPOCH + timedelta(microseconds=int(time))
