"""The periods of reports: months and ISO weeks (UTC), each with a key that is a part of its address. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from monitor.analysis.availability.months import (
    InvalidMonth,
    month_after,
    month_before,
    month_name,
    parse_month,
)

WEEK = timedelta(weeks=1)
_WEEK = re.compile(r"(19[7-9][0-9]|[2-9][0-9]{3})-W(0[1-9]|[1-4][0-9]|5[0-3])", re.ASCII)


class PeriodKind(StrEnum):
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class InvalidPeriod(ValueError):
    """A text is no period, or one that has not begun; the message says what is expected."""


@dataclass(frozen=True)
class ReportPeriod:
    """The days from *first* until before *end*."""

    kind: PeriodKind
    first: date
    end: date

    @property
    def key(self) -> str:
        """The text of ``parse_period``: ``2026-05`` or ``2026-W21``."""
        if self.kind == PeriodKind.MONTHLY:
            return f"{self.first:%Y-%m}"
        year, week, _ = self.first.isocalendar()
        return f"{year}-W{week:02}"

    @property
    def label(self) -> str:
        """The period in words: ``May 2026``, ``Week 21, 2026``."""
        if self.kind == PeriodKind.MONTHLY:
            return month_name(self.first)
        year, week, _ = self.first.isocalendar()
        return f"Week {week}, {year}"

    @property
    def days(self) -> str:
        return f"{self.first} to {self.end - timedelta(days=1)}"

    @property
    def before(self) -> ReportPeriod:
        if self.kind == PeriodKind.WEEKLY:
            return week_of(self.first - WEEK)
        return month_of(month_before(self.first))

    @property
    def after(self) -> ReportPeriod:
        return week_of(self.end) if self.kind == PeriodKind.WEEKLY else month_of(self.end)

    @property
    def start(self) -> datetime:
        return datetime(self.first.year, self.first.month, self.first.day, tzinfo=UTC)

    def until(self, now: datetime) -> datetime:
        """Return the end of the period, or *now* while it lasts."""
        return min(datetime(self.end.year, self.end.month, self.end.day, tzinfo=UTC), now)


def month_of(day: date) -> ReportPeriod:
    first = day.replace(day=1)
    return ReportPeriod(PeriodKind.MONTHLY, first, month_after(first))


def week_of(day: date) -> ReportPeriod:
    monday = day - timedelta(days=day.weekday())
    return ReportPeriod(PeriodKind.WEEKLY, monday, monday + WEEK)


def parse_period(text: str, now: datetime) -> ReportPeriod:
    """Return the month or week *text*, such as ``2026-05`` or ``2026-W21``.

    Raises:
        InvalidPeriod: *text* has another format, the year has no such week, or the period has not begun.
    """
    match = _WEEK.fullmatch(text)
    if match is None:
        try:
            return month_of(parse_month(text or "-", now))
        except InvalidMonth as error:
            raise InvalidPeriod(f"{error}, or a week such as 2026-W21") from error
    try:
        period = week_of(date.fromisocalendar(int(match[1]), int(match[2]), 1))
    except ValueError as error:
        raise InvalidPeriod(f"{match[1]} has no week {match[2]}") from error
    if period.start > now:
        raise InvalidPeriod(f"{text} lies in the future")
    return period
