from __future__ import annotations

import random

import pytest

from forecasting import methods
from forecasting.base import Source
from forecasting.learning.pairing import PairedMethod

HOUR_SECONDS = 3600.0
PROBE, OTHER = Source("gather", "total.seconds"), Source("circle", "total.seconds")


def load(name: str) -> PairedMethod:
    method = methods.load(name)()
    assert isinstance(method, PairedMethod)
    return method


def trained(name: str, pairs: list[tuple[float, float]], source: Source = PROBE) -> PairedMethod:
    """Return a method that learned a pair each hour: a value of the probe, and the application's after it."""
    method = load(name)
    for hour, (predictor_value, value) in enumerate(pairs):
        at = hour * HOUR_SECONDS
        method.observe_predictor(source, at - 600.0, at - 300.0, predictor_value)
        method.update(at, value)
    return method


def forecast_after(method: PairedMethod, predictor_value: float, hours: int) -> float:
    at = hours * HOUR_SECONDS
    method.observe_predictor(PROBE, at - 600.0, at - 300.0, predictor_value)
    return method.forecast(at).median


def a_line(count: int, height: float = 5.0, slope: float = 3.0) -> list[tuple[float, float]]:
    draw = random.Random(8)
    return [(x, height + slope * x) for x in (draw.uniform(10.0, 30.0) for _ in range(count))]


@pytest.mark.parametrize("name", ["lrp", "lrp_last_10", "lrp_first", "lrp_robust"])
def test_a_straight_relation_is_found(name: str) -> None:
    assert forecast_after(trained(name, a_line(40)), 20.0, 40) == pytest.approx(65.0)


def test_a_ridge_uses_more_of_the_slope_with_more_pairs() -> None:
    for count in (10, 40):
        pairs = a_line(count)
        mean = sum(height for _, height in pairs) / count
        slope_believed = count / (count + 10.0)
        expected = mean + slope_believed * (5.0 + 3.0 * 12.0 - mean)
        assert forecast_after(trained("lrp_ridge", pairs), 12.0, count) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lrp_last_10", 100.0 + 20.0), ("lrp_first", 65.0), ("lrp_robust", 100.0 + 20.0)],
)
def test_each_is_trained_on_its_own_pairs(name: str, expected: float) -> None:
    """The relation changes after 40 pairs; 25 more follow."""
    pairs = [*a_line(40), *a_line(25, height=100.0, slope=1.0)]
    assert forecast_after(trained(name, pairs), 20.0, 65) == pytest.approx(expected)


def test_the_full_history_is_between_the_old_relation_and_the_new_one() -> None:
    pairs = [*a_line(40), *a_line(25, height=100.0, slope=1.0)]
    assert 65.0 < forecast_after(trained("lrp", pairs), 20.0, 65) < 120.0


@pytest.mark.parametrize("name", ["lrp_first", "tsp_lrp_first"])
def test_how_many_pairs_come_first_can_be_chosen(name: str) -> None:
    kind = methods.load(name)
    first_of_5, first_of_30 = kind(first=5), kind()  # type: ignore[call-arg]
    for hour, (predictor_value, value) in enumerate([*a_line(5), *a_line(25, height=100.0)]):
        for method in (first_of_5, first_of_30):
            assert isinstance(method, PairedMethod)
            method.observe_predictor(
                PROBE, hour * HOUR_SECONDS - 600.0, hour * HOUR_SECONDS - 300.0, predictor_value
            )
            method.update(hour * HOUR_SECONDS, value)
    at = 30 * HOUR_SECONDS
    assert first_of_5.forecast(at).median < first_of_30.forecast(at).median - 30.0


def test_quantiles_are_matched_where_a_line_would_be_bent() -> None:
    draw = random.Random(8)
    pairs = [(x, 2.0**x) for x in (draw.uniform(0.0, 10.0) for _ in range(100))]
    assert forecast_after(trained("matching", pairs), 9.0, 100) == pytest.approx(2.0**9, rel=0.1)
    assert forecast_after(trained("matching", pairs), 99.0, 101) == max(value for _, value in pairs)


def test_the_hybrid_regresses_on_the_forecast_of_the_probe() -> None:
    """A probe that is always about 10, except for one outlier, is forecast at 10 again."""
    draw = random.Random(9)
    steady = [
        (predictor_value, 10.0 * predictor_value)
        for predictor_value in (10.0 + draw.gauss(0.0, 1.0) for _ in range(60))
    ]
    assert forecast_after(trained("tsp_lrp", steady), 500.0, 60) == pytest.approx(100.0, rel=0.1)
    assert forecast_after(trained("lrp", steady), 500.0, 60) > 130.0


def test_the_value_of_a_run_is_paired_with_the_predictor_value_known_at_its_start() -> None:
    """A newer value came before the run's own value became known, and is not its pair."""
    draw = random.Random(8)
    method = load("lrp")
    for hour in range(30):
        at, predictor_value = hour * HOUR_SECONDS, draw.uniform(10.0, 30.0)
        method.observe_predictor(PROBE, at - 600.0, at - 300.0, predictor_value)
        method.observe_predictor(PROBE, at + 300.0, at + 600.0, draw.uniform(10.0, 30.0))
        method.update(at, 2.0 * predictor_value)
    assert forecast_after(method, 25.0, 40) == pytest.approx(50.0)


def test_the_predictor_with_the_least_error_is_used() -> None:
    draw = random.Random(9)
    method = load("lrp")
    for hour, (predictor_value, value) in enumerate(a_line(40)):
        at = hour * HOUR_SECONDS
        method.observe_predictor(OTHER, at - 700.0, at - 400.0, draw.uniform(10.0, 30.0))
        method.observe_predictor(PROBE, at - 600.0, at - 300.0, predictor_value)
        method.update(at, value)
    assert method.predictor(40 * HOUR_SECONDS) == PROBE
    assert forecast_after(method, 20.0, 40) == pytest.approx(65.0, rel=0.05)


def test_with_fewer_than_three_pairs_the_last_value_is_the_answer() -> None:
    assert forecast_after(trained("lrp", a_line(2)), 99.0, 2) == a_line(2)[-1][1]
    assert trained("lrp", a_line(2)).predictor(9e9) is None


def test_no_forecast_is_far_beyond_the_values_so_far() -> None:
    pairs = a_line(40)
    seen = [value for _, value in pairs]
    apart = max(seen) - min(seen)
    assert forecast_after(trained("lrp", pairs), 1e9, 40) == max(seen) + apart
    assert forecast_after(trained("lrp", pairs), -1e9, 40) == min(seen) - apart


def test_robust_lines_of_many_predictors_are_fitted_in_turn_without_exception() -> None:
    method = load("lrp_robust")
    sources = [Source(f"probe {number}", "total.seconds") for number in range(11)]
    for hour, (predictor_value, value) in enumerate(a_line(60)):
        at = hour * HOUR_SECONDS
        for number, source in enumerate(sources):
            method.observe_predictor(source, at - 600.0, at - 300.0, predictor_value * (1.0 + number))
        method.update(at, value)
    for number, source in enumerate(sources):
        key = "\n".join(source)
        assert method.fitted(method.pairing(key), 20.0 * (1.0 + number)) == pytest.approx(65.0)
