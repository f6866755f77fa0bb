"""Which interval a chart has."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitor.depot.rollups.statistics import EVERY
from monitor.web.charts.chart_choice import LENGTHS, MOST_POINTS, ChartChoice, interval_for, read_choice

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("span", "has_more_runs", "interval"),
    [
        (DAY, False, "run"),
        (45 * DAY, False, "run"),
        (DAY, True, "hour"),
        (14 * DAY, True, "hour"),
        (30 * DAY, True, "day"),
        (46 * DAY, False, "day"),
        (365 * DAY, True, "day"),
        (5 * 365 * DAY, False, "week"),
        (20 * 365 * DAY, True, "month"),
        (100 * 365 * DAY, True, "year"),
    ],
)
def test_the_interval_suits_the_range(span: timedelta, has_more_runs: bool, interval: str) -> None:
    assert interval_for(span, has_more_runs=has_more_runs) == interval


@pytest.mark.parametrize("chosen", EVERY)
def test_a_chosen_interval_is_kept_while_a_trace_has_room(chosen: str) -> None:
    assert interval_for(DAY, has_more_runs=True, chosen=chosen) == chosen
    coarser = interval_for(300 * 365 * DAY, has_more_runs=True, chosen=chosen)
    assert coarser == "year"
    assert 300 * 365 * DAY / LENGTHS["year"] < MOST_POINTS


@pytest.mark.parametrize("chosen", ["", *EVERY])
def test_no_trace_has_more_points_than_it_may(chosen: str) -> None:
    for days in range(1, 100 * 365, 97):
        interval = interval_for(days * DAY, has_more_runs=True, chosen=chosen)
        assert days * DAY / LENGTHS[interval] < MOST_POINTS  # type: ignore[index]


def test_runs_are_shown_if_the_reader_chooses_runs() -> None:
    assert interval_for(365 * DAY, has_more_runs=True, chosen="run") == "run"


def test_an_unknown_choice_counts_as_none() -> None:
    query = {"metric": "no-such-metric", "interval": "fortnight", "scale": "cubic"}
    assert read_choice(query, ["total.seconds"]) == ChartChoice()
