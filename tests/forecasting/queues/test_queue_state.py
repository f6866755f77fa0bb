from __future__ import annotations

import csv
import gzip
import math
import random
from bisect import insort
from collections.abc import Iterator
from itertools import groupby

import pytest

from forecasting.base import InvalidNumber
from forecasting.queues.binomial import (
    EXACT_UNTIL,
    MAX_HISTORY,
    WaitHistory,
    autocorrelation,
    binomial_rank,
    min_history,
    product_limit,
    run_of_change,
)
from tests import realdata

GOLDEN = realdata.DATA / "nws-golden" / "bmbp_ts-oracle.csv.gz"
TRAINING = 60  # waits that the original got before the first bound; they are not in the file
TRIMMED = "+trim"


def trained(*waits: float, bounds: bool = False) -> WaitHistory:
    """Return a history of *waits*, known a minute after each other; with *bounds*, each is scored."""
    history = WaitHistory()
    for index, wait in enumerate(waits):
        history.add(60.0 * index, wait, history.bound(60.0 * index) if bounds else None)
    return history


@pytest.mark.parametrize(
    ("quantile", "confidence", "minimum"),
    [(0.95, 0.95, 59), (0.9, 0.95, 29), (0.95, 0.99, 90), (0.5, 0.95, 5), (0.5, 0.5, 1), (0.99, 0.95, 299)],
)
def test_the_minimum_history_is_the_first_whose_largest_wait_is_a_bound(
    quantile: float, confidence: float, minimum: int
) -> None:
    assert min_history(quantile, confidence) == minimum
    assert binomial_rank(minimum, quantile, confidence) == minimum


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.5, math.nan])
def test_an_invalid_probability_is_refused(probability: float) -> None:
    for pair in ((probability, 0.95), (0.95, probability)):
        with pytest.raises(InvalidNumber, match="between 0 and 1"):
            min_history(*pair)


@pytest.mark.parametrize("n", [59, 60, 92, 93, 200, 500])
def test_the_rank_is_the_least_that_has_the_confidence(n: int) -> None:
    def confidence(rank: int) -> float:
        return sum(math.comb(n, below) * 0.95**below * 0.05 ** (n - below) for below in range(rank))

    rank = binomial_rank(n)
    assert confidence(rank) >= 0.95 > confidence(rank - 1)


def test_where_the_law_is_taken_as_normal_the_rank_hardly_moves() -> None:
    assert binomial_rank(EXACT_UNTIL + 1) - binomial_rank(EXACT_UNTIL) in (0, 1)
    assert binomial_rank(100_000) / 100_000 == pytest.approx(0.95, abs=0.002)


def the_original(*, trimmed: bool) -> Iterator[tuple[str, list[dict[str, str]]]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as stream:
        for case, steps in groupby(csv.DictReader(stream), key=lambda step: step["case"]):
            if case.endswith(TRIMMED) == trimmed:
                yield case, list(steps)


def training(steps: list[dict[str, str]]) -> list[float]:
    """Reconstruct the 60 waits before the first answer, as far as the bounds depend on them.

    These are the waits that became bounds; a single one is all there was. The first bound is the last but one
    of them, so if none is larger, another wait is, which never became a bound. The others were smaller.
    """
    seen: set[float] = set()
    waits: list[float] = []
    for step in steps:
        bound = float(step["bound"])
        if bound not in seen and bound not in waits:
            waits.append(bound)
        seen.add(float(step["value"]))
    if len(waits) == 1:
        return waits * TRAINING
    if max(waits) == waits[0]:
        waits.append(math.inf)
    return sorted([0.0] * (TRAINING - len(waits)) + waits)


@pytest.mark.skipif(bool(realdata.missing(GOLDEN)), reason=realdata.missing(GOLDEN) or "-")
def test_every_bound_equals_that_of_the_original_except_its_exact_rank_which_is_one_too_low() -> None:
    compared = 0
    for case, steps in the_original(trimmed=False):
        ordered = training(steps)
        for step in steps:
            too_low = 1 if len(ordered) <= EXACT_UNTIL else 0
            rank = binomial_rank(len(ordered)) - too_low
            assert ordered[rank - 1] == float(step["bound"]), (case, step)
            insort(ordered, float(step["value"]))
            compared += 1
    assert compared == 540 + 180 + 1940


@pytest.mark.skipif(bool(realdata.missing(GOLDEN)), reason=realdata.missing(GOLDEN) or "-")
def test_bounds_of_histories_that_the_original_has_cut_differ_by_the_same_rank_alone() -> None:
    for _, steps in the_original(trimmed=True):
        waits = [float(step["value"]) for step in steps]
        compared = 0
        for index, step in enumerate(steps):
            n = int(step["history"])
            if n > index:
                continue  # some of its history is not in the file
            too_low = 1 if n <= EXACT_UNTIL else 0
            ordered = sorted(waits[index - n : index])
            assert ordered[binomial_rank(n) - too_low - 1] == float(step["bound"]), step
            compared += 1
        assert compared > 1700


@pytest.mark.parametrize(("alike", "run"), [(-0.4, 3), (0.0, 3), (0.31, 4), (0.6, 8), (0.84, 14), (1.0, 28)])
def test_the_more_alike_neighbours_are_the_longer_is_a_run_that_means_something(
    alike: float, run: int
) -> None:
    assert run_of_change(alike) == run


def test_how_alike_neighbours_are_is_a_matter_of_their_order_alone() -> None:
    draw = random.Random(2)
    noise = [draw.lognormvariate(3.0, 2.0) for _ in range(2000)]
    walk = [0.0]
    for _ in range(500):
        walk.append(walk[-1] + draw.gauss(0.0, 1.0))
    assert autocorrelation(noise) == pytest.approx(0.0, abs=0.05)
    assert autocorrelation(walk) > 0.9
    assert autocorrelation([math.exp(step / 10.0) for step in walk]) == pytest.approx(autocorrelation(walk))
    assert autocorrelation([5.0] * 100) == 0.0
    assert autocorrelation([5.0]) == 0.0


def test_where_nothing_waits_the_product_limit_is_the_order_statistic() -> None:
    waits = [float(wait) for wait in range(100, 200)]
    for rank in range(1, 101):
        assert product_limit(waits, [], rank / 100) == waits[rank - 1]


def test_the_product_limit_by_hand() -> None:
    # Of 8 jobs 2, 4, 6, 8, 10 have ended; three went on after 1, 5 and 9. At risk 7, 6, 4, 3, 1: there remain
    # 6/7, 5/7, 5/7 * 3/4, 5/7 * 1/2, 0.
    waits, ages = [2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 5.0, 9.0]
    remaining = [6 / 7, 5 / 7, 15 / 28, 5 / 14]
    for wait, left in zip(waits, remaining, strict=False):
        assert product_limit(waits, ages, 1.0 - left) == wait
        assert product_limit(waits, ages, 1.0 - left + 1e-6) > wait  # type: ignore[operator]
    assert product_limit(waits, ages, 1.0) == 10.0
    assert product_limit(waits, [*ages, 11.0], 0.9) is None


def test_a_history_too_short_for_the_confidence_has_no_bound() -> None:
    assert trained(*[5.0] * 58).bound(0.0) is None
    assert trained(*[5.0] * 58, 7.0).bound(0.0) == 7.0


def test_three_misses_in_a_row_are_a_change_point_that_shortens_the_history() -> None:
    draw = random.Random(4)
    waits = trained(*[draw.uniform(10.0, 20.0) for _ in range(1000)], bounds=True)
    assert waits.bound(0.0) == pytest.approx(19.5, abs=0.4)
    for index in range(3):
        assert len(waits.history) == 1000 + index
        waits.add(1e6, draw.uniform(50.0, 60.0), waits.bound(0.0))
    assert len(waits.history) == waits.minimum
    for _ in range(waits.minimum):
        assert len(waits.history) == waits.minimum  # the old ones go as new ones come
        waits.add(1e6, draw.uniform(50.0, 60.0), None)
    assert min(waits.history.ordered) >= 50.0
    assert waits.changes == 1


def test_a_run_of_hits_that_chance_does_not_make_lowers_the_bound() -> None:
    draw = random.Random(5)
    waits = trained(*[draw.uniform(1000.0, 2000.0) for _ in range(1000)], bounds=True)
    steps = 0
    while (bound := waits.bound(0.0) or 0.0) > 2.0:
        waits.add(1e6, draw.uniform(1.0, 2.0), bound)
        steps += 1
    assert steps < 300  # 176 to the change point, 59 until all waits are new; dilution alone takes 19,000


def test_a_queue_that_stalls_raises_the_bound_while_it_stalls() -> None:
    waits = trained(*[float(index % 50) for index in range(200)])
    before, now = waits.bound(12_000.0), 12_000.0
    assert before == 48.0
    for _ in range(30):
        waits.submit(now)
    bounds = [waits.bound(now + later) for later in (10.0, 40.0, 100.0, 3600.0)]
    assert bounds == [49.0, 49.0, 100.0, 3600.0]
    for _ in range(30):
        waits.withdraw(now)
    assert waits.bound(now + 7200.0) == before


def test_where_many_wait_some_of_them_stand_for_all() -> None:
    waits = trained(*[float(index % 50) for index in range(200)])
    bounds = []
    for index in range(1000):
        waits.submit(12_000.0 + index)
        bounds.append(waits.bound(12_000.0 + index) or 0.0)
    assert bounds[:40] == sorted(bounds[:40])
    assert bounds[100:] == [float(index) for index in range(100, 1000)]  # as long as the oldest has waited


def test_a_few_long_waits_move_the_bound_by_their_share() -> None:
    waits = trained(*[float(index) for index in range(1000)])
    assert waits.bound(60_000.0) == 960.0
    for _ in range(20):
        waits.submit(60_000.0)
    # 39 of 1,020 may wait longer than the bound; 20 do so already after 990 s.
    assert waits.bound(60_990.0) == 980.0


def test_jobs_submitted_before_the_history_begins_do_not_count() -> None:
    waits = trained(*[10.0] * MAX_HISTORY)
    for index in range(500):
        waits.submit(-1000.0 * index - 1.0)
    assert waits.bound(1e6) == 10.0


def test_other_probabilities_have_other_histories() -> None:
    waits = WaitHistory(0.999, 0.95)
    for index in range(2995):
        assert waits.bound(0.0) is None
        waits.add(float(index), float(index), None)
    assert waits.bound(0.0) == 2994.0
