"""Months of the calendar (UTC), as the date of their first day."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

FIRST_MONTH = date(1970, 1, 1)
_MONTH = re.compile(r"(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])", re.ASCII)


class InvalidMonth(ValueError):
    """A text is not a month, or a month that has not begun; the message says what is expected."""


def parse_month(text: str, now: datetime) -> date:
    """Return the first day of the month *text*, such as ``2026-03``; empty: of the present month.

    Raises:
        InvalidMonth: *text* has another format, or the month lies in the future.
    """
    today = now.astimezone(UTC).date()
    if not text:
        return today.replace(day=1)
    match = _MONTH.fullmatch(text)
    if match is None:
        raise InvalidMonth(f"expected a month such as 2026-03, got {text!r}")
    month = date(int(match[1]), int(match[2]), 1)
    if month > today:
        raise InvalidMonth(f"{text} lies in the future")
    return month


def month_after(month: date) -> date:
    """Return the first day of the next month."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def month_before(month: date) -> date:
    """Return the first day of the previous month."""
    return date(month.year - (month.month == 1), (month.month - 2) % 12 + 1, 1)


def month_name(month: date) -> str:
    """Return the month in words: ``May 2026``."""
    return f"{month:%B %Y}"
