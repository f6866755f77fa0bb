"""The spans of time that a part of a table covers: a month, or a year of what is long ago."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

MONTHLY_FROM = 2020  # imported histories reach back decades: a year of them is a month of ours


@dataclass(frozen=True, order=True)
class Span:
    """From *start* on, until before *end*; both UTC midnights."""

    start: datetime
    end: datetime

    @property
    def label(self) -> str:
        """Part of a table's name."""
        return f"{self.start:%Y_%m}" if self.start.year >= MONTHLY_FROM else f"{self.start:%Y}"


def span_of(time: datetime) -> Span:
    """The span that *time*, which has a zone, lies in."""
    utc = time.astimezone(UTC)
    if utc.year < MONTHLY_FROM:
        return Span(datetime(utc.year, 1, 1, tzinfo=UTC), datetime(utc.year + 1, 1, 1, tzinfo=UTC))
    start = datetime(utc.year, utc.month, 1, tzinfo=UTC)
    return Span(start, _month_after(start))


def spans_ahead(now: datetime, months: int) -> list[Span]:
    """The span of *now* and those of the next *months*."""
    spans = [span_of(now)]
    while len(spans) <= months:
        spans.append(span_of(spans[-1].end))
    return spans


def _month_after(start: datetime) -> datetime:
    year, month = divmod(start.year * 12 + start.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)
