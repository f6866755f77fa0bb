from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from forecasting import methods
from forecasting.base import Source
from forecasting.evaluation.rolling_origin import (
    Baselines,
    MethodScores,
    MethodSummary,
    RollingForecasts,
    evaluate,
    geometric_mean,
    rolling_origin,
    summaries,
)
from forecasting.reading.histories import RunHistory, predictor_values_for
from forecasting.series import Observation

DAY_SECONDS = 86_400.0


def daily(values: list[float], *, seconds: float = 900.0) -> list[Observation]:
    starts = [index * DAY_SECONDS for index in range(len(values))]
    return [Observation(at, at + seconds, value) for at, value in zip(starts, values, strict=True)]


def noise(length: int, seed: int = 5) -> list[float]:
    draw = random.Random(seed)
    return [draw.lognormvariate(2.0, 0.3) for _ in range(length)]


def test_each_run_is_forecast_from_values_known_at_its_start() -> None:
    values = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    prompt = rolling_origin("last_value", daily(values))
    assert prompt.actual.tolist() == values
    assert prompt.median[3:].tolist() == [12.0, 13.0, 14.0]
    late = rolling_origin("last_value", daily(values, seconds=1.5 * DAY_SECONDS))
    assert late.median[4:].tolist() == [12.0, 13.0]  # each run was still going on when the next one started


@pytest.mark.parametrize("seconds", [0.0, -900.0])
def test_the_value_of_a_run_is_unknown_at_its_start_even_if_it_took_no_time(
    seconds: float,
) -> None:
    values = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    runs = daily(values, seconds=seconds)
    assert rolling_origin("last_value", runs).median[3:].tolist() == [12.0, 13.0, 14.0]
    stages = [(Source("", "stage.compute.seconds"), run) for run in runs]
    with_stages = rolling_origin("stagewise", daily(values), stages)
    np.testing.assert_array_equal(with_stages.median, rolling_origin("stagewise", daily(values), []).median)


def test_a_forecaster_with_too_few_values_abstains() -> None:
    assert np.isnan(rolling_origin("last_value", daily(noise(5))).median).tolist() == [True] * 3 + [False] * 2


def test_the_order_in_which_runs_arrive_changes_nothing() -> None:
    runs = daily(noise(30))
    shuffled = random.Random(1).sample(runs, len(runs))
    ordered, other = rolling_origin("nws", runs), rolling_origin("nws", shuffled)
    np.testing.assert_array_equal(ordered.median, other.median)
    np.testing.assert_array_equal(ordered.quantiles[0.05], other.quantiles[0.05])


def test_no_quantile_is_below_the_floor() -> None:
    runs = daily([0.0, 9.0] * 20)
    assert min(rolling_origin("nws", runs).quantiles[0.05][4:]) < 0.0
    assert min(rolling_origin("nws", runs, floor=0.0).quantiles[0.05][4:]) >= 0.0


def test_the_duration_of_an_update_is_measured_by_the_given_clock() -> None:
    ticks = itertools.count()
    trail = rolling_origin("last_value", daily(noise(11)), clock=lambda: float(next(ticks)))
    assert (
        trail.update_seconds == 11 / 10
    )  # one look at the clock before and after; the last run is never learned


@pytest.mark.parametrize("name", methods.names())
def test_shuffling_the_future_of_all_series_never_moves_a_past_forecast(name: str) -> None:
    probe = Source("probe", "")
    runs, of_probe = noise(60), noise(60, seed=6)
    order = random.Random(2)
    future = order.sample(runs[45:], 15), order.sample(of_probe[45:], 15)
    before = rolling_origin(name, daily(runs), [(probe, observation) for observation in daily(of_probe)])
    after = rolling_origin(
        name,
        daily(runs[:45] + future[0]),
        [(probe, observation) for observation in daily(of_probe[:45] + future[1])],
    )
    np.testing.assert_array_equal(before.median[:46], after.median[:46])
    np.testing.assert_array_equal(before.mean[:46], after.mean[:46])
    np.testing.assert_array_equal(before.quantiles[0.9][:46], after.quantiles[0.9][:46])


def some_forecasts(
    actual: list[float], medians: list[float], reach: float = 1.0, method: str = "some"
) -> RollingForecasts:
    at = np.array(medians)
    ends = {0.1: at - reach, 0.9: at + reach, 0.05: at - 2 * reach, 0.95: at + 2 * reach}
    return RollingForecasts(method, np.array(actual), at, at, ends, 0.002)


ACTUAL = [10.0, 12.0, 11.0, 15.0]


def test_a_score_by_hand() -> None:
    last_value = some_forecasts(ACTUAL, [9.0, 10.0, 12.0, 11.0], method="last_value")
    score = Baselines(last_value, last_value).score(
        some_forecasts(ACTUAL, [10.0, 11.0, 11.0, 14.0]), warm_up=1
    )
    assert (score.method, score.n, score.abstained) == ("some", 3, 0)
    assert score.mae == pytest.approx(2 / 3)
    assert score.mae_ratio == pytest.approx((2 / 3) / (7 / 3))
    assert score.rmse_ratio == pytest.approx(math.sqrt(2 / 21))
    assert score.relative_error == pytest.approx((1 / 12 + 0 + 1 / 15) / 3)
    assert (score.coverage_80, score.coverage_90) == (1.0, 1.0)
    assert (score.winkler_80, score.winkler_90) == (2.0, 4.0)
    assert score.ms_per_update == 2.0


def test_the_simple_interval_is_as_wide_as_the_errors_before() -> None:
    last_value = some_forecasts(ACTUAL, [9.0, 10.0, 12.0, 11.0], method="last_value")
    score = Baselines(last_value, last_value).score(some_forecasts(ACTUAL, ACTUAL, reach=0.5), warm_up=2)
    reach = 1.644854 * math.sqrt(5 / 2), 1.644854 * math.sqrt(2)
    simple = (2 * reach[0] + 2 * reach[1] + (15 - 11 - reach[1]) / 0.05) / 2
    assert score.interval_ratio == pytest.approx(2.0 / simple, rel=1e-6)


def test_runs_that_a_method_abstains_from_are_counted_and_not_compared() -> None:
    last_value = some_forecasts(ACTUAL, [9.0, 10.0, 12.0, 11.0], method="last_value")
    score = Baselines(last_value, last_value).score(
        some_forecasts(ACTUAL, [math.nan, math.nan, 11.0, 13.0]), warm_up=1
    )
    assert (score.n, score.abstained) == (2, 1)
    assert score.mae_ratio == pytest.approx(2 / 5)


def test_a_method_that_always_abstains_has_no_scores() -> None:
    last_value = some_forecasts(ACTUAL, [9.0, 10.0, 12.0, 11.0], method="last_value")
    score = Baselines(last_value, last_value).score(some_forecasts(ACTUAL, [math.nan] * 4), warm_up=0)
    assert (score.n, score.abstained, score.mae, score.mae_ratio, score.coverage_90) == (
        0,
        4,
        None,
        None,
        None,
    )


def test_a_constant_series_has_no_ratios() -> None:
    (score,) = evaluate(daily([4.0] * 60), (), ["nws"])
    assert (score.n, score.mae, score.mae_ratio, score.interval_ratio) == (20, 0.0, None, None)


def test_the_last_value_is_its_own_measure() -> None:
    scores = evaluate(daily(noise(80)), (), ["nws", "last_value"])
    assert [score.method for score in scores] == ["nws", "last_value"]
    assert scores[1].mae_ratio == scores[1].rmse_ratio == 1.0
    assert scores[0].mae_ratio is not None
    assert scores[0].mae_ratio < 0.9  # of noise around a level


@pytest.mark.parametrize(
    "values", [[1e300, -1e300] * 30, [0.0] * 60, [5e-324, 1e-310] * 30, [*[1.0] * 50, 1e300, *[1.0] * 9]]
)
def test_hard_series_have_finite_figures_or_none(values: list[float]) -> None:
    for score in evaluate(daily(values), (), ["nws", "local_level"]):
        figures = [figure for figure in vars(score).values() if isinstance(figure, float)]
        assert all(map(math.isfinite, figures)), score


@pytest.mark.parametrize(
    ("ratios", "mean"), [([0.5, 2.0], 1.0), ([0.5, None], 0.5), ([], None), ([None], None), ([0.0, 4.0], 0.0)]
)
def test_the_geometric_mean_leaves_missing_ratios_out(ratios: list[float | None], mean: float | None) -> None:
    mean_ratio = geometric_mean(ratios)
    assert mean_ratio == (None if mean is None else pytest.approx(mean))


def test_a_summary_has_geometric_means_of_ratios_and_means_of_the_rest() -> None:
    last_value = some_forecasts(ACTUAL, [9.0, 10.0, 12.0, 11.0], method="last_value")
    baselines = Baselines(last_value, last_value)
    good, bad = some_forecasts(ACTUAL, [10.0, 11.0, 11.0, 14.0]), some_forecasts(ACTUAL, [0.0, 0.0, 0.0, 0.0])
    scores: list[MethodScores] = [baselines.score(forecasts, warm_up=0) for forecasts in (good, bad)]
    (summary,) = summaries([[score] for score in scores])
    assert isinstance(summary, MethodSummary)
    assert (summary.method, summary.series, summary.coverage_90) == ("some", 2, 0.5)
    assert summary.mae_ratio == pytest.approx(math.sqrt((2 / 8) * (48 / 8)))


def beside_each_other(loads: list[float], *, of_the_future: int = 0) -> list[RunHistory]:
    """Return two probes that run one after the other each day under one load; another in the last days."""
    known_count = len(loads) - of_the_future
    loads = [*loads[:known_count], *random.Random(6).sample(loads[known_count:], of_the_future)]
    histories = []
    for number, name in enumerate(("first", "second")):
        draw = random.Random(number)
        observations = [
            Observation(at, at + 600.0, load * draw.lognormvariate(0.0, 0.05))
            for day, load in enumerate(loads)
            for at in [day * DAY_SECONDS + number * 3600.0]
        ]
        histories.append(RunHistory("here", Source(name, "total.seconds"), "probe", observations))
    return histories


def test_a_probe_is_forecast_from_the_probe_that_ran_just_before_it() -> None:
    first, second = beside_each_other(noise(150))
    of_probe = predictor_values_for(second, [first, second])
    (informed,) = evaluate(second.observations, of_probe, ["auto"])
    (alone,) = evaluate(second.observations, [], ["auto"])
    assert informed.mae is not None
    assert alone.mae is not None
    assert informed.mae < 0.6 * alone.mae


def test_shuffling_the_future_of_all_probes_never_moves_a_past_forecast_of_one() -> None:
    medians = []
    for shuffled in (0, 30):
        mean_ratio = beside_each_other(noise(100), of_the_future=shuffled)
        medians += [
            rolling_origin("auto", history.observations, predictor_values_for(history, mean_ratio)).median
            for history in mean_ratio
        ]
    of_first, of_second, of_other_first, of_other_second = medians
    np.testing.assert_array_equal(of_first[:71], of_other_first[:71])
    np.testing.assert_array_equal(of_second[:70], of_other_second[:70])
    assert of_second[70] != of_other_second[70]  # the first one of that day was known already
    assert of_first[71] != of_other_first[71]
