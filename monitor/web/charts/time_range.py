"""The time range of a page, from its query string: ``range=7d``, or ``from=`` and ``to=``.

All pages with charts read it here, so that a link from one to another keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from urllib.parse import urlencode

from reporters.fields import parse_time, shown

PARAMETERS = ("range", "from", "to")
LABELS = {
    "1h": "1 hour",
    "24h": "24 hours",
    "7d": "7 days",
    "30d": "30 days",
    "90d": "90 days",
    "1y": "1 year",
    "all": "All",
}
SPANS = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "1y": timedelta(days=365),
}
DEFAULT = "7d"
EARLIEST_YEAR, LATEST_YEAR = 1900, 2200
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?", re.ASCII)


class InvalidRange(ValueError):
    """The query string names no time range; the message says what is expected."""


@dataclass(frozen=True)
class PageRange:
    """A range of time.

    Attributes:
        key: the key of a relative range in ``LABELS``; empty for an absolute one.
        start: the first instant; None: from the first run on.
        end: the first instant after the range; of a relative range, the time of the request.
        zone: the reader's, for the label.
    """

    key: str
    start: datetime | None
    end: datetime
    zone: tzinfo = field(default=UTC, compare=False)

    @property
    def is_relative(self) -> bool:
        return bool(self.key)

    @property
    def label(self) -> str:
        """The range for people: ``7 days``, ``2026-03-01 00:00 to 2026-04-01 00:00 UTC``."""
        if self.is_relative:
            return LABELS[self.key]
        start = f"{self.start.astimezone(self.zone):%Y-%m-%d %H:%M} to " if self.start else "until "
        return f"{start}{self.end.astimezone(self.zone):%Y-%m-%d %H:%M} {self.zone}"

    @property
    def file_label(self) -> str:
        """The range in the name of a file."""
        start = f"{self.start:%Y%m%dT%H%M}-" if self.start else ""
        return self.key or f"{start}{self.end:%Y%m%dT%H%M}"

    @property
    def span(self) -> timedelta | None:
        """The length of the range; None if it has no start."""
        return self.end - self.start if self.start else None

    @property
    def query(self) -> dict[str, str]:
        """The parameters of a query string that mean this range."""
        if self.is_relative:
            return {"range": self.key}
        times = {"from": self.start, "to": self.end}
        return {name: f"{time:%Y-%m-%dT%H:%M:%SZ}" for name, time in times.items() if time}

    @property
    def query_string(self) -> str:
        return urlencode(self.query)


def relative(key: str, now: datetime) -> PageRange:
    """Return the range called *key* that ends at *now*."""
    return PageRange(key, now - SPANS[key] if key in SPANS else None, now)


def parse_range(
    query: Mapping[str, str], now: datetime, clock: tzinfo = UTC, *, default: str = DEFAULT
) -> PageRange:
    """Return the range that *query* asks for, or the *default*.

    A time without a zone is one of *clock*, the reader's zone. Only ``from``: the range ends at *now*.

    Raises:
        InvalidRange: *query* asks for an unknown range, or for times that are none or in the wrong order.
    """
    start, end = (page_time(name, query.get(name, ""), clock) for name in ("from", "to"))
    if start is None and end is None:
        key = query.get("range", "") or default
        if key not in LABELS:
            raise InvalidRange(f"range: expected one of {', '.join(LABELS)}, got {shown(key)}")
        return relative(key, now)
    end = end or now
    if start is not None and start >= end:
        raise InvalidRange(
            f"from: expected a time before {end:%Y-%m-%d %H:%M} UTC, got {start:%Y-%m-%d %H:%M} UTC"
        )
    return PageRange("", start, end, clock)


def page_time(name: str, text: str, clock: tzinfo = UTC) -> datetime | None:
    """Return the time in *text*, one of *clock* if it names no zone; None for an empty text.

    Raises:
        InvalidRange: the text is no time; the message begins with *name*.
    """
    if not text:
        return None
    try:
        if _LOCAL.fullmatch(text):
            time = datetime.fromisoformat(text).replace(tzinfo=clock).astimezone(UTC)
        else:
            time = parse_time(text)
    except (ValueError, OverflowError):
        raise InvalidRange(
            f"{name}: expected a time such as 2026-03-01T12:00 or 2026-03-01T12:00:00Z, got {shown(text)}"
        ) from None
    if not EARLIEST_YEAR <= time.year <= LATEST_YEAR:
        raise InvalidRange(
            f"{name}: expected a time of the years {EARLIEST_YEAR} to {LATEST_YEAR}, got {shown(text)}"
        )
    return time
