"""The header ``Retry-After`` of a server that asks to be left alone for a while (RFC 9110)."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

MOST_RETRY_SECONDS = 86_400.0  # a receiver must not silence alerts for ever
MAY_ASK = frozenset({429, 503})  # statuses whose header is obeyed


def retry_after_seconds(header: str, now: float) -> float | None:
    """Return how long the value of Retry-After, seconds or a date, asks to wait at the Unix time *now*.

    At most ``MOST_RETRY_SECONDS``; None if it is neither.
    """
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), MOST_RETRY_SECONDS))
    try:
        at = parsedate_to_datetime(text)
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return min(max(seconds, 0.0), MOST_RETRY_SECONDS)
