"""The report on availability as tables of texts, for pages and PDF, and as CSV. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.core.csvfile import to_csv
from monitor.core.units import coarse_seconds, percent, tenths_of_percent
from monitor.web.reports.availability_report import AvailabilityReport, PeriodLine, ReportRow

UNKNOWN = "\N{EN DASH}"
COLUMNS = (
    "Availability",
    "Change",
    "Reliability",
    "Down",
    "Maintenance",
    "Coverage",
    "Failures",
    "MTBF",
    "MTTR",
)
PERIOD_COLUMNS = ("Availability", "Reliability", "Down", "Maintenance", "Coverage")
DEFINITIONS = (
    ("Availability", "up / (total - unknown)"),
    ("Change", "difference from the availability of the period before, in percentage points"),
    ("Reliability", "up / (total - unknown - scheduled downtime)"),
    ("Maintenance", "scheduled downtime"),
    ("Coverage", "the share of the period about which anything is known"),
    ("Failures", "incidents at the site that began in the period"),
    ("MTBF", "mean time between failures: up time / failures"),
    ("MTTR", "mean time to repair: mean length of the incidents that ended in the period"),
    ("Suites", "sums over the sites that their series use; a site counts in each of its suites"),
)
_CSV_COLUMNS = (
    "scope",
    "name",
    "title",
    "period",
    "availability",
    "availability_before",
    "reliability",
    "up_seconds",
    "down_seconds",
    "scheduled_seconds",
    "unknown_seconds",
    "coverage",
    "failures",
    "mtbf_seconds",
    "mttr_seconds",
)


def cells(row: ReportRow) -> list[str]:
    """Return *row* as the texts of ``COLUMNS``."""
    return [
        _share(row.totals.availability),
        points(row.change),
        _share(row.totals.reliability),
        _duration(row.totals.down),
        _duration(row.totals.scheduled),
        UNKNOWN if row.totals.coverage is None else percent(row.totals.coverage),
        f"{row.repairs.began:,}" if row.repairs.began else UNKNOWN,
        _duration(row.between_failures),
        _duration(row.repairs.to_repair),
    ]


def lines(rows: Sequence[ReportRow]) -> list[tuple[ReportRow, list[tuple[str, str]]]]:
    """Return each of *rows* with its texts, each with the label of its column."""
    return [(row, list(zip(COLUMNS, cells(row), strict=True))) for row in rows]


def period_lines(periods: Sequence[PeriodLine]) -> list[tuple[PeriodLine, list[tuple[str, str]]]]:
    """Return each of *periods* with its texts, each with the label of its column."""
    return [(line, list(zip(PERIOD_COLUMNS, _period_cells(line), strict=True))) for line in periods]


def points(change: float | None) -> str:
    """Format a difference of shares in percentage points, with its sign: ``+1.2``, ``-0.3``, ``0.0``."""
    if change is None:
        return UNKNOWN
    text = f"{100 * change:+z.1f}"
    return "0.0" if text == "+0.0" else text


def as_csv(report: AvailabilityReport) -> str:
    """Return the figures of *report* as CSV: shares of 1 and seconds, unrounded; unknown ones are empty."""
    return to_csv([_CSV_COLUMNS, *_csv_rows(report)])


def _csv_rows(report: AvailabilityReport) -> Iterator[tuple[object, ...]]:
    scopes = (("all", [report.total]), ("site", report.sites), ("suite", report.suites))
    for scope, rows in scopes:
        for row in rows:
            yield (scope, *_csv_row(row, report.period.key))


def _csv_row(row: ReportRow, period: str) -> tuple[object, ...]:
    return (
        row.name,
        row.title,
        period,
        _number(row.totals.availability),
        _number(row.before.availability),
        _number(row.totals.reliability),
        row.totals.up,
        row.totals.down,
        row.totals.scheduled,
        row.totals.unknown,
        _number(row.totals.coverage),
        row.repairs.began,
        _number(row.between_failures),
        _number(row.repairs.to_repair),
    )


def _period_cells(line: PeriodLine) -> list[str]:
    totals = line.totals
    return [
        _share(totals.availability),
        _share(totals.reliability),
        _duration(totals.down),
        _duration(totals.scheduled),
        UNKNOWN if totals.coverage is None else percent(totals.coverage),
    ]


def _share(share: float | None) -> str:
    return UNKNOWN if share is None else tenths_of_percent(share)


def _duration(seconds: float | None) -> str:
    return coarse_seconds(seconds) if seconds else UNKNOWN


def _number(value: float | None) -> float | str:
    return "" if value is None else value
