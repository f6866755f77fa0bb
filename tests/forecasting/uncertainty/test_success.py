from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import state
from forecasting.base import Abstained, InvalidNumber
from forecasting.uncertainty.success import EXPERTS, PathOutcome, SuccessForecaster
from tests import realdata

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS


def hourly(successes: Sequence[bool]) -> list[PathOutcome]:
    return [
        PathOutcome(at * HOUR_SECONDS, at * HOUR_SECONDS + 300.0, succeeded)
        for at, succeeded in enumerate(successes)
    ]


def trained(outcomes: Sequence[PathOutcome]) -> SuccessForecaster:
    forecaster = SuccessForecaster()
    for outcome in outcomes:
        forecaster.observe(outcome)
    return forecaster


def chance(outcomes: Sequence[PathOutcome], at_seconds: float = 1e6) -> float:
    return trained(outcomes).forecast(at_seconds).first


def test_a_path_without_runs_abstains() -> None:
    with pytest.raises(Abstained) as abstained:
        SuccessForecaster().forecast(0.0)
    assert abstained.value.reason == "too_few"


def test_more_successes_give_a_higher_probability_that_is_never_certain() -> None:
    after = [chance(hourly([True] * count)) for count in (1, 5, 50, 500)]
    assert 0.5 < after[0] < after[1] < after[2] < after[3] < 1.0
    assert after[3] > 0.99
    assert 0.0 < chance(hourly([False] * 500)) < 0.01


def test_an_outcome_is_not_used_before_it_was_known() -> None:
    forecaster = trained([*hourly([True] * 9), PathOutcome(10.0, 99 * HOUR_SECONDS, False)])
    assert forecaster.forecast(98 * HOUR_SECONDS).n == 9
    assert forecaster.forecast(99 * HOUR_SECONDS).n == 10


def test_outcomes_known_later_are_not_used_for_an_earlier_time() -> None:
    forecaster = trained(hourly([True] * 9))
    forecaster.forecast(1e6)
    with pytest.raises(Abstained) as abstained:
        forecaster.forecast(600.0)
    assert abstained.value.reason == "past"


def test_the_order_in_which_outcomes_arrive_changes_nothing() -> None:
    outcomes = hourly([index % 7 != 3 for index in range(60)])
    shuffled = random.Random(1).sample(outcomes, len(outcomes))
    assert trained(outcomes).forecast(1e6) == trained(shuffled).forecast(1e6)


def test_shuffling_the_future_never_moves_a_past_forecast() -> None:
    draw = random.Random(2)
    outcomes = hourly([draw.random() < 0.8 for _ in range(80)])
    other = outcomes[:50] + [
        PathOutcome(outcome.time_seconds, outcome.known_at_seconds, not outcome.succeeded)
        for outcome in outcomes[50:]
    ]
    for index in range(1, 51):
        at_seconds = index * HOUR_SECONDS
        assert chance(outcomes, at_seconds) == chance(other, at_seconds)
    assert chance(outcomes) != chance(other)


def outages(hours_up: int, hours_down: int, times: int) -> list[bool]:
    return ([True] * hours_up + [False] * hours_down) * times


def test_in_an_outage_success_is_improbable_and_repeating_helps_little() -> None:
    history = hourly(outages(60, 10, 8))
    up = trained(history[:-15]).forecast(history[-15].time_seconds)
    down = trained(history[:-5]).forecast(history[-5].time_seconds)
    assert up.first > 0.95
    assert up.later < 0.5
    assert down.first < 0.3


def test_failures_that_have_nothing_to_do_with_each_other_are_repeated_with_confidence() -> None:
    draw = random.Random(4)
    forecast_so_far = trained(hourly([draw.random() < 0.7 for _ in range(600)])).forecast(600 * HOUR_SECONDS)
    assert forecast_so_far.first == pytest.approx(0.7, abs=0.1)
    assert forecast_so_far.later == pytest.approx(0.7, abs=0.12)


def test_the_end_of_an_outage_is_hoped_for_as_time_goes_by() -> None:
    history = hourly(outages(60, 3, 20))
    ended_seconds = history[-1].known_at_seconds
    at_once, next_week = (
        trained(history).forecast(ended_seconds + later).first for later in (60.0, 7 * DAY_SECONDS)
    )
    assert next_week > at_once + 0.2


def test_a_bad_hour_of_the_day_is_learned() -> None:
    history = hourly([index % 24 != 3 for index in range(24 * 40)])
    midnight = 40 * DAY_SECONDS
    assert chance(history, midnight + 3 * HOUR_SECONDS) < 0.2
    assert chance(history, midnight + 5 * HOUR_SECONDS) > 0.95


def test_a_path_that_has_become_good_is_trusted_within_weeks() -> None:
    assert chance(hourly([False] * 500 + [True] * 150), 650 * HOUR_SECONDS) > 0.9


def test_the_weights_of_the_experts_add_up_to_one() -> None:
    forecaster = trained(hourly(outages(20, 4, 12)))
    forecaster.learn_until(1e7)
    assert list(forecaster.weights()) == list(EXPERTS)
    assert sum(forecaster.weights().values()) == pytest.approx(1.0)


def test_a_loaded_state_continues_as_if_it_had_not_been_kept() -> None:
    history = hourly(outages(20, 4, 12))
    forecaster = trained(history[:150])
    forecaster.learn_until(history[149].known_at_seconds)
    loaded = state.load(SuccessForecaster, state.dump(forecaster))
    for outcome in history[150:]:
        forecaster.observe(outcome)
        loaded.observe(outcome)
    assert loaded.forecast(1e7) == forecaster.forecast(1e7)
    assert state.dump(loaded) == state.dump(forecaster)
    assert len(state.dump(forecaster)) < 3000


def test_overlapping_jobs_are_learned_with_what_was_known_at_their_start() -> None:
    # Each job starts long before the previous one ends, so the similarity of neighbours is of no use.
    endings = [index // 20 % 2 == 0 for index in range(2000)]
    jobs = [
        PathOutcome(at * HOUR_SECONDS, (at + 20) * HOUR_SECONDS, succeeded)
        for at, succeeded in enumerate(endings)
    ]
    estimates = [(p, succeeded) for p, succeeded in replayed(jobs) if not math.isnan(p)]
    assert (
        log_loss(estimates[200:]) < 0.3
    )  # a run of twenty is followed by its contrary, which only this order shows


def test_an_old_failure_reported_late_is_no_news_of_the_present() -> None:
    at = 999 * HOUR_SECONDS
    path = hourly([index % 40 != 7 and index % 40 != 8 for index in range(999)])
    late = PathOutcome(100.0, at, False, 400.0)
    present = PathOutcome(998.5 * HOUR_SECONDS, at, False, 998.6 * HOUR_SECONDS)
    steady = chance(path, at)
    assert chance([*path, late], at) == pytest.approx(steady, abs=0.01)
    assert chance([*path, present], at) < steady - 0.1


def test_by_hand_an_old_outcome_counts_among_recent_runs_by_its_age() -> None:
    days = [PathOutcome(at * DAY_SECONDS, at * DAY_SECONDS + 60.0, True) for at in range(5)]
    forecaster = trained(
        [*days, PathOutcome(3 * DAY_SECONDS + 60.0, 5 * DAY_SECONDS, False, 3.1 * DAY_SECONDS)]
    )
    forecaster.learn_until(5 * DAY_SECONDS)
    newest = forecaster._moments[-1]
    assert (newest.newest_seconds, newest.succeeded, newest.streak) == (4 * DAY_SECONDS, True, 5)
    of_day = newest.recent[0]
    assert of_day.runs - of_day.successes == pytest.approx(0.5, rel=1e-3)
    assert forecaster.n == 6


@pytest.mark.parametrize("time", [math.nan, math.inf])
def test_a_time_that_is_no_number_is_refused(time: float) -> None:
    with pytest.raises(InvalidNumber, match="finite times"):
        SuccessForecaster().observe(PathOutcome(time, 1.0, True))
    with pytest.raises(InvalidNumber, match="finite time"):
        SuccessForecaster().forecast(time)


any_time = st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 90).map(float)


@settings(derandomize=True, database=None)
@given(
    outcomes=st.lists(st.builds(PathOutcome, any_time, any_time, st.booleans()), min_size=1, max_size=60),
    at_seconds=any_time,
)
def test_any_history_has_a_sound_chance_or_none(outcomes: list[PathOutcome], at_seconds: float) -> None:
    try:
        chance = trained(outcomes).forecast(at_seconds)
    except Abstained:
        assert all(outcome.known_at_seconds > at_seconds for outcome in outcomes)
        return
    assert 0.0 < chance.first < 1.0
    assert 0.0 < chance.later < 1.0
    assert chance.age_seconds >= 0.0


Estimates = list[tuple[float, bool]]


def replayed(outcomes: Sequence[PathOutcome]) -> Estimates:
    """Return the estimate for each run at its start with the outcome; NaN if nothing was known."""
    forecaster = SuccessForecaster()
    estimates = []
    for outcome in outcomes:
        try:
            estimates.append((forecaster.forecast(outcome.time_seconds).first, outcome.succeeded))
        except Abstained:
            estimates.append((math.nan, outcome.succeeded))
        forecaster.observe(outcome)
    return estimates


def running_rate(outcomes: Sequence[PathOutcome]) -> Estimates:
    """Return the same with the share of successes among all known runs as the estimate."""
    waiting: list[tuple[float, bool]] = []
    count = successes = 0
    estimates = []
    for outcome in outcomes:
        while waiting and waiting[0][0] <= outcome.time_seconds:
            successes += heapq.heappop(waiting)[1]
            count += 1
        estimates.append(((successes + 0.5) / (count + 1.0), outcome.succeeded))
        heapq.heappush(waiting, (outcome.known_at_seconds, outcome.succeeded))
    return estimates


def brier(estimates: Estimates) -> float:
    return sum((probability - succeeded) ** 2 for probability, succeeded in estimates) / len(estimates)


def log_loss(estimates: Estimates) -> float:
    return -sum(math.log(p if succeeded else 1.0 - p) for p, succeeded in estimates) / len(estimates)


def calibration_error(estimates: Estimates) -> float:
    """Return the mean distance of estimates from outcomes, over ten classes of estimates."""
    classes: dict[int, list[float]] = {}
    for probability, succeeded in estimates:
        classes.setdefault(min(int(10 * probability), 9), []).append(probability - succeeded)
    return sum(abs(sum(misses)) for misses in classes.values()) / len(estimates)


def assert_beats_the_running_rate(paths: Sequence[Sequence[PathOutcome]], least: float) -> None:
    """Assert a factor of *least* in both scores, and that the estimates are calibrated."""
    ours = [estimate for path in paths for estimate in replayed(path)[40:]]
    plain = [estimate for path in paths for estimate in running_rate(path)[40:]]
    assert brier(ours) < least * brier(plain)
    assert log_loss(ours) < least * log_loss(plain)
    assert calibration_error(ours) < 0.03


@pytest.mark.skipif(bool(realdata.missing(realdata.OUTAGES)), reason=realdata.missing(realdata.OUTAGES))
@pytest.mark.nightly
def test_it_beats_the_running_rate_on_nodes_that_really_failed() -> None:
    nodes = realdata.outages(31)[::15]
    assert_beats_the_running_rate([list(islice(hourly_probes(down), 4000)) for down in nodes], least=0.75)


def hourly_probes(down: Sequence[tuple[float, float]]) -> Iterator[PathOutcome]:
    """Yield runs of ten minutes from a month before the first outage to the last; those during one fail."""
    at_seconds, outages = down[0][0] - 30 * DAY_SECONDS, list(down)
    while outages:
        ended_seconds = at_seconds + 600.0
        yield PathOutcome(at_seconds, ended_seconds, outages[0][0] > ended_seconds)
        at_seconds += HOUR_SECONDS
        while outages and outages[0][1] < at_seconds:
            outages.pop(0)


def episodes(draw: random.Random, fails: float, recovers: float) -> Iterator[bool]:
    up = True
    while True:
        up = draw.random() > fails if up else draw.random() < recovers
        yield up and draw.random() > 0.05


def nights(draw: random.Random) -> Iterator[bool]:
    hour = 0
    while True:
        yield draw.random() > (0.7 if 2 <= hour % 24 < 5 else 0.05)
        hour += 1


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        (lambda draw: episodes(draw, 0.02, 0.2), 0.8),
        (lambda draw: episodes(draw, 0.005, 0.05), 0.7),
        (nights, 0.75),
    ],
    ids=["short outages", "long outages", "bad hours"],
)
@pytest.mark.nightly
def test_it_beats_the_running_rate_where_there_are_episodes_and_bad_hours(
    kind: Callable[[random.Random], Iterator[bool]], least: float
) -> None:
    paths = [hourly(list(islice(kind(random.Random(seed)), 1500))) for seed in (1, 2, 3)]
    assert_beats_the_running_rate(paths, least)


def test_where_failures_are_pure_chance_it_costs_next_to_nothing() -> None:
    draw = random.Random(8)
    path = hourly([draw.random() < 0.85 for _ in range(3000)])
    assert log_loss(replayed(path)[40:]) < 1.02 * log_loss(running_rate(path)[40:])
