"""Fewer runs for a chart: nothing that stands out is lost."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from monitor.models import Run
from monitor.models.run import State
from monitor.web.charts.series_chart import RunChart
from monitor.web.charts.thinned_runs import MOST_DRAWN, MOST_RATES, thinned

START = datetime(2026, 5, 1, tzinfo=UTC)


def chart_of(totals: list[float | None], segments: list[int | None], states: list[State]) -> RunChart:
    slots = [START + number * timedelta(minutes=10) for number in range(len(totals))]
    rates = {"wan.bytes_per_second": [None if total is None else 1e9 / total for total in totals]}
    return RunChart(
        metric="total.seconds",
        unit="seconds",
        runs=[Run(slot=slot, state=state) for slot, state in zip(slots, states, strict=True)],
        segments=segments,
        boundaries=[],
        cut=False,
        stages=[],
        seconds={},
        values=totals,
        forecasts=[],
        pending=None,
        next_slot=None,
        rates=rates,
    )


@pytest.mark.parametrize("seed", range(20))
def test_extremes_ends_and_borders_of_segments_stay(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(MOST_DRAWN + 1, 3000)
    totals = [None if draw.random() < 0.03 else draw.lognormvariate(3, 1) for _ in range(count)]
    border = draw.randint(1, count - 1)
    segments = [None if total is None else 1 + (at >= border) for at, total in enumerate(totals)]
    states = [State.FAILED if total is None else State.PASSED for total in totals]
    whole = chart_of(totals, segments, states)
    drawn = thinned(whole)
    assert len(drawn.runs) <= MOST_DRAWN + 2 * MOST_RATES + 2
    kept = {run.slot for run in drawn.runs}
    measured = [at for at, total in enumerate(totals) if total is not None]
    last, first = max(at for at in measured if at < border), min(at for at in measured if at >= border)
    by_total = sorted(measured, key=lambda at: totals[at] or 0.0)
    lowest, highest = by_total[0], by_total[-1]
    assert {whole.runs[at].slot for at in (0, count - 1, last, first, lowest, highest)} <= kept
    values = dict(zip((run.slot for run in whole.runs), totals, strict=True))
    assert drawn.values == [values[run.slot] for run in drawn.runs]
    assert (State.FAILED in {run.state for run in drawn.runs}) == (State.FAILED in states)


def test_a_chart_of_few_runs_stays_as_it_is() -> None:
    whole = chart_of([1.0] * MOST_DRAWN, [1] * MOST_DRAWN, [State.PASSED] * MOST_DRAWN)
    assert thinned(whole) is whole
