from __future__ import annotations

import math

import numpy as np
import pytest

from forecasting.base import Abstained, InvalidNumber, UnknownMethod
from forecasting.series import Forecaster, Observation, forecast_history


def following(*observations: Observation) -> Forecaster:
    forecaster = Forecaster("last_value")
    for observation in observations:
        forecaster.observe(observation)
    return forecaster


HISTORY = tuple(
    Observation(float(at), at + 5.0, value) for at, value in [(0, 10.0), (10, 12.0), (20, 11.0), (30, 50.0)]
)


def test_a_value_is_not_used_before_it_was_known() -> None:
    forecaster = following(*HISTORY)
    assert forecaster.forecast(34.9).mean == 11.0
    assert forecaster.forecast(35.0).mean == 50.0


def test_the_interval_comes_from_the_errors_of_the_method() -> None:
    forecast = following(*HISTORY[:3]).forecast(30.0)
    reach = 1.885618 * math.sqrt((2.0**2 + 1.0**2) / 2.0)  # two misses: t with 2 degrees of freedom
    assert forecast.quantiles == pytest.approx({0.1: 11.0 - reach, 0.5: 11.0, 0.9: 11.0 + reach}, rel=1e-6)


def test_the_ends_of_another_level_carry_their_own_probabilities() -> None:
    assert list(following(*HISTORY).forecast(99.0, probabilities=(0.05, 0.95)).quantiles) == [0.05, 0.95]


def test_age_counts_from_when_the_newest_value_happened() -> None:
    forecast = following(*HISTORY).forecast(100.0)
    assert (forecast.n, forecast.age_seconds) == (4, 70.0)


def test_data_older_than_the_caller_accepts_make_the_forecaster_abstain() -> None:
    forecaster = following(*HISTORY)
    assert forecaster.forecast(130.0, stale_after_seconds=100.0).age_seconds == 100.0
    with pytest.raises(Abstained, match="101 s old, accepted are 100 s") as abstained:
        forecaster.forecast(131.0, stale_after_seconds=100.0)
    assert abstained.value.reason == "stale"


def test_the_past_is_not_forecast_from_later_values() -> None:
    forecaster = following(*HISTORY)
    forecaster.forecast(60.0)
    with pytest.raises(Abstained) as abstained:
        forecaster.forecast(20.0)
    assert abstained.value.reason == "past"


def test_a_report_that_comes_late_is_used_from_then_on() -> None:
    forecaster = following(*HISTORY[:3])
    assert forecaster.forecast(40.0).mean == 11.0
    forecaster.observe(HISTORY[3])
    assert forecaster.forecast(40.0).mean == 50.0


def test_numbers_that_cannot_be_used_are_counted() -> None:
    forecaster = following(
        Observation(0.0, 0.0, math.nan),
        Observation(math.inf, 0.0, 1.0),
        Observation(0.0, math.nan, 1.0),
        *HISTORY,
    )
    assert forecaster.dropped == 3
    assert forecaster.forecast(99.0).n == 4


def test_numbers_of_numpy_are_kept_as_others_are() -> None:
    arrays = np.array(
        [
            [observation.time_seconds, observation.known_at_seconds, observation.value]
            for observation in HISTORY
        ]
    )
    forecaster, same = following(*(Observation(*row) for row in arrays)), following(*HISTORY)
    assert forecaster.dump() == same.dump()  # while they wait
    assert forecaster.forecast(99.0) == same.forecast(99.0)
    assert forecaster.dump() == same.dump()


def test_one_call_forecasts_a_history_in_any_order() -> None:
    step_by_step = following(*HISTORY).forecast(99.0, floor=0.0)
    assert forecast_history(reversed(HISTORY), 99.0, method="last_value") == step_by_step


def test_one_call_forecasts_with_the_nws_battery_and_never_below_zero() -> None:
    forecast = forecast_history(HISTORY, 99.0)
    assert forecast.method == "nws"
    assert min(forecast.quantiles.values()) >= 0.0


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(UnknownMethod, match="'oracle'"):
        forecast_history(HISTORY, 99.0, method="oracle")


@pytest.mark.parametrize("at_seconds", [math.nan, math.inf])
def test_a_time_that_is_no_number_is_refused(at_seconds: float) -> None:
    with pytest.raises(InvalidNumber, match="finite time"):
        following(*HISTORY).forecast(at_seconds)


def test_a_quantile_of_the_method_itself_replaces_the_estimated_one() -> None:
    waits = Forecaster("queue_wait")
    for at in range(200):
        waits.observe(Observation(60.0 * at, 60.0 * at + 1.0, float(at % 40)))
    trained = waits.forecast(99_999.0, probabilities=(0.05, 0.5, 0.9, 0.95, 0.99)).quantiles
    (bound,) = waits.method.forecast(99_999.0).quantiles.values()
    assert trained[0.95] == bound
    assert sorted(trained.values()) == list(trained.values())
