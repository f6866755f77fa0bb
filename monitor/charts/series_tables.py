"""The values of the charts of a series as tables, for readers who do not see the charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.ledger.attribution import outcome_label
from monitor.units import humanised, seconds

if TYPE_CHECKING:
    from monitor.charts.series_chart import SeriesChart

MOST_ROWS = 100  # the newest; the download has all


@dataclass(frozen=True)
class ChartTable:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def chart_tables(chart: SeriesChart) -> dict[str, ChartTable]:
    """Return the tables of *chart* by the name of its drawing, newest first."""
    numbers = range(len(chart.runs))[-MOST_ROWS:][::-1]
    slots = [f"{run.slot:%Y-%m-%d %H:%M:%S}" for run in chart.runs]
    stages = [stage.name for stage in chart.stages]
    history = [
        (
            slots[number],
            outcome_label(chart.runs[number].state),
            *(_text(chart.seconds[name][number], "seconds") for name in stages),
            _text(chart.totals[number], "seconds"),
        )
        for number in numbers
    ]
    rates = [
        (slots[number], *(_text(values[number], "bytes_per_second") for values in chart.rates.values()))
        for number in numbers
    ]
    days = [
        (f"{day.time:%Y-%m-%d}", *map(seconds, (day.mean, day.lowest, day.highest)), str(day.passed))
        for day in reversed(chart.days)
    ]
    return {
        "history": ChartTable(("Scheduled (UTC)", "State", *stages, "Total"), history),
        "rates": ChartTable(("Scheduled (UTC)", *chart.rates), rates),
        "days": ChartTable(("Day (UTC)", "Mean", "Lowest", "Highest", "Passed"), days),
    }


def _text(value: float | None, unit: str) -> str:
    return "" if value is None else humanised(value, unit)
