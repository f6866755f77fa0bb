"""``manage.py stats``: the performance of a series in a time window, by stage and total."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.analysis.performance.series_statistics import NoPassedRuns, SeriesStatistics, series_statistics
from monitor.analysis.performance.tables import as_latex, as_text, tables
from monitor.depot.samples.sample_arrays import TooManySamples
from monitor.management.find_series import find_series
from monitor.management.time_options import parse_time

USUAL = "30d"
MOST_DAYS = 20_000  # until 1970, the earliest slot of a report
EARLIEST_YEAR = 1970


class Command(BaseCommand):
    help = "Print statistics of the passed runs of a series, by stage and total, and their change points."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("series")
        parser.add_argument(
            "--window", default=USUAL, metavar="30d|FROM..UNTIL", help=f"days until now, or times ({USUAL})"
        )
        parser.add_argument(
            "--with",
            action="append",
            dest="partners",
            metavar="SERIES",
            help="correlate with this series, may be repeated; default: the predictors of the series",
        )
        formats = parser.add_mutually_exclusive_group()
        formats.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
        formats.add_argument("--latex", action="store_true", dest="as_latex", help="print LaTeX tables")

    def handle(
        self,
        *,
        series: str,
        window: str,
        partners: Sequence[str] | None,
        as_json: bool,
        as_latex: bool,
        **_: Any,
    ) -> None:
        start, end = _window(window, timezone.now())
        chosen = find_series(series)
        others = None if partners is None else [find_series(name) for name in partners]
        try:
            statistics = series_statistics(chosen, start, end, others)
        except NoPassedRuns as error:
            raise CommandError(str(error)) from error
        except TooManySamples as error:
            raise CommandError(f"--window: a metric has {error}; choose a shorter window") from error
        if as_json:
            self.stdout.write(
                json.dumps(msgspec.to_builtins(statistics, str_keys=True), indent=2, allow_nan=False)
            )
        else:
            self.stdout.write(_latex(statistics) if as_latex else _text(statistics))


def _window(text: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the start and the end of the window *text*: days until now, or two times."""
    if days := re.fullmatch(r"([1-9][0-9]{0,4})d", text):
        if int(days[1]) > MOST_DAYS:
            raise CommandError(f"--window: expected at most {MOST_DAYS}d, got {text!r}")
        return now - timedelta(days=int(days[1])), now
    first, separator, last = text.partition("..")
    if not separator:
        raise CommandError(f"--window: expected 30d or FROM..UNTIL, got {text!r}")
    start, end = (_time(part) for part in (first, last))
    if start.year < EARLIEST_YEAR:
        raise CommandError(f"--window: expected a start in {EARLIEST_YEAR} or later, got {text!r}")
    if start >= end:
        raise CommandError(f"--window: expected a start before the end, got {text!r}")
    return start, end


def _time(text: str) -> datetime:
    is_day = re.fullmatch(r"\d{4}-\d{2}-\d{2}", text)
    whole = f"{text}T00:00Z" if is_day else text
    try:
        return parse_time("--window", whole, example="2026-03-01 or 2026-03-01T18:00Z").astimezone(UTC)
    except OverflowError:
        raise CommandError(f"--window: {text!r} is out of range") from None


def _heading(statistics: SeriesStatistics) -> str:
    others = f", {statistics.other_runs} in other segments" if statistics.other_runs else ""
    return (
        f"{statistics.series}, segment {statistics.segment}, {statistics.start:%Y-%m-%d %H:%M} to "
        f"{statistics.end:%Y-%m-%d %H:%M} UTC: {statistics.runs} passed runs{others}"
    )


def _text(statistics: SeriesStatistics) -> str:
    notes = "(i) all stages; (ii) without setup and cleanup; (iii) without setup, cleanup and queue"
    blocks = [f"{_heading(statistics)}\n{notes}", *map(as_text, tables(statistics))]
    return "\n\n".join(blocks)


def _latex(statistics: SeriesStatistics) -> str:
    return "\n\n".join([f"% {_heading(statistics)}", *map(as_latex, tables(statistics))])
