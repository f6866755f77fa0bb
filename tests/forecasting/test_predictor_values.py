from __future__ import annotations

import pytest

from forecasting import predictor_values
from forecasting.base import Source
from forecasting.predictor_values import MAX_ROWS, PredictorValues


def rows_known_at(*known_at: float) -> PredictorValues:
    """Return rows that contain the time at which they became known."""
    values = PredictorValues()
    for at in known_at:
        values.add(at, [at])
    return values


@pytest.mark.parametrize(("at", "expected"), [(9.0, None), (10.0, [10.0]), (29.0, [20.0]), (1e9, [30.0])])
def test_the_newest_is_that_which_was_known_then(at: float, expected: list[float] | None) -> None:
    assert rows_known_at(10.0, 20.0, 30.0).newest(at) == expected


def test_a_row_out_of_order_is_known_no_earlier_than_the_row_before_it() -> None:
    values = rows_known_at(10.0, 20.0)
    values.add(5.0, [5.0])
    assert values.newest(19.0) == [10.0]
    assert values.newest(20.0) == [5.0]


def test_a_run_of_a_week_finds_almost_the_newest_row_known_at_its_start() -> None:
    hours = [float(hour) for hour in range(24 * 14)]
    start = 24.0 * 7
    newest = rows_known_at(*hours).newest(start)
    assert newest is not None
    assert start - 48.0 <= newest[0] <= start


def test_all_of_the_newest_rows_are_kept_and_a_limited_number_in_total() -> None:
    values = rows_known_at(*map(float, range(1000)))
    assert [values.newest(at) for at in (999.0, 998.0, 997.0)] == [[999.0], [998.0], [997.0]]
    assert len({tuple(values.newest(float(at)) or ()) for at in range(1000)}) <= MAX_ROWS


def test_a_clock_that_stands_still_fills_nothing() -> None:
    assert rows_known_at(*[7.0] * 100).newest(7.0) == [7.0]


def test_a_key_leads_back_to_its_source() -> None:
    source = Source("Gather, nightly", "stage.transfer_1.seconds")
    assert predictor_values.source(predictor_values.key(source)) == source
