"""``manage.py availability``: the availability and reliability of a site, day by day."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from datetime import UTC, date, datetime, time
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.failures.availability import StatusSeconds
from monitor.failures.site_availability import PROFILE, SiteAvailability, availability_of
from monitor.models import Site
from monitor.units import coarse_seconds, percent


class Command(BaseCommand):
    help = "Print the availability and reliability of a site, for each day of a month (UTC)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("site")
        parser.add_argument("--month", metavar="YYYY-MM", help="the current month by default")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def handle(self, *, site: str, month: str | None, as_json: bool, **_: Any) -> None:
        now = timezone.now()
        first, end = _period(month, now)
        found = Site.objects.filter(name=site).first()
        if found is None:
            names = ", ".join(Site.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"there is no site {site!r}; there are: {names}")
        shown = availability_of(found, first, min(end, now))
        self.stdout.write(json.dumps(_document(shown), indent=2) if as_json else _table(shown))


def _period(month: str | None, now: datetime) -> tuple[date, datetime]:
    """Return the first day of *month* and the beginning of the next month."""
    text = month or f"{now.astimezone(UTC):%Y-%m}"
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text) or text < "1970":
        raise CommandError(f"--month: expected a month such as 2026-03, got {text!r}")
    year, number = (int(part) for part in text.split("-"))
    first = date(year, number, 1)
    if datetime.combine(first, time(), UTC) > now:
        raise CommandError(f"--month: {text} lies in the future")
    next_month = date(year + number // 12, number % 12 + 1, 1)
    return first, datetime.combine(next_month, time(), UTC)


def _table(shown: SiteAvailability) -> str:
    rows: list[tuple[str, ...]] = [
        ("day", "availability", "reliability", "up", "down", "scheduled", "unknown")
    ]
    rows.extend((day.day.isoformat(), *_cells(day.seconds)) for day in shown.days)
    rows.append(("total", *_cells(shown.total)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([f"{shown.site}, profile {PROFILE}", *lines])


def _cells(seconds: StatusSeconds) -> tuple[str, ...]:
    shares = (seconds.availability, seconds.reliability)
    durations = (seconds.up, seconds.down, seconds.scheduled, seconds.unknown)
    return (
        *("-" if share is None else percent(share) for share in shares),
        *("-" if not duration else coarse_seconds(duration) for duration in durations),
    )


def _document(shown: SiteAvailability) -> dict[str, Any]:
    return {
        "site": shown.site,
        "profile": PROFILE,
        "days": [{"day": day.day.isoformat(), **_figures(day.seconds)} for day in shown.days],
        "total": _figures(shown.total),
        "by_probe": {probe: _figures(seconds) for probe, seconds in shown.by_probe.items()},
    }


def _figures(seconds: StatusSeconds) -> dict[str, float | None]:
    return {
        "availability": seconds.availability,
        "reliability": seconds.reliability,
        "up_seconds": seconds.up,
        "down_seconds": seconds.down,
        "scheduled_seconds": seconds.scheduled,
        "unknown_seconds": seconds.unknown,
    }
