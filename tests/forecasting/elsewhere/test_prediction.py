from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from forecasting.elsewhere.abstained import NoPrediction
from forecasting.elsewhere.prediction import predict
from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns
from tests.forecasting.elsewhere.systems import DAY, runs

REFERENCE = SystemRuns("reference", runs((10.0, 4.0), (11.0, 4.4)), runs((10.0, 5.0), (11.0, 5.5)))


def target(*replays: IoRun) -> SystemRuns:
    return SystemRuns("target", [], list(replays))


def test_a_prediction_is_the_sum_over_classes_of_ratio_times_application() -> None:
    prediction = predict(REFERENCE, target(*runs((30.0, 1.0))))
    assert prediction.seconds == pytest.approx(30.0 * 1.0 + 1.0 * 0.8)
    assert (prediction.pairs, prediction.replays) == (2, 1)
    read, write = prediction.classes
    assert (read.name, read.reference_seconds) == ("read", 10.5)
    assert read.ratio == pytest.approx(30.0 / 10.5)
    assert [write.seconds, write.reference_seconds] == pytest.approx([0.8, 4.2])


def test_where_bytes_are_known_times_count_per_byte() -> None:
    reference = SystemRuns(
        "reference",
        runs((10.0, 4.0), (10.0, 4.0), moved=(200.0, 80.0)),
        runs((5.0, 2.0), (5.0, 2.0), moved=(100.0, 40.0)),
    )
    prediction = predict(reference, target(*runs((30.0, 6.0), moved=(50.0, 20.0))))
    assert prediction.seconds == pytest.approx(30.0 * 4 + 6.0 * 4)


def test_a_class_that_takes_time_only_on_the_target_has_the_ratio_of_all_classes() -> None:
    def run(started: float, write: float, sync: float) -> IoRun:
        return IoRun(started, {"write": IoTime(write), "sync": IoTime(sync)})

    reference = SystemRuns(
        "memory", [run(0.0, 2.0, 0.1), run(DAY, 2.0, 0.1)], [run(0.0, 2.1, 0.0), run(DAY, 2.1, 0.0)]
    )
    prediction = predict(reference, target(run(DAY, 2.1, 30.0)))
    assert prediction.seconds == pytest.approx(2.0 + 30.0)


def test_the_ratio_of_a_small_class_is_not_its_own() -> None:
    def run(started: float, sync: float) -> IoRun:
        return IoRun(started, {"read": IoTime(10.0), "sync": IoTime(sync)})

    reference = SystemRuns("reference", [run(0.0, 0.3), run(DAY, 0.3)], [run(0.0, 0.1), run(DAY, 0.1)])
    prediction = predict(reference, target(run(0.0, 5.0)))
    assert prediction.seconds == pytest.approx(10.0 + 5.0 * 10.3 / 10.1)


def test_the_published_errors_count_until_three_systems_are_known() -> None:
    narrow = [
        SystemRuns(name, runs((ratio, ratio), (ratio, ratio)), runs((1.0, 1.0), (1.0, 1.0)))
        for name, ratio in (("a", 1.0), ("b", 1.01), ("c", 0.99))
    ]
    replay = target(*runs((3.0, 3.0)))
    by_published = predict(narrow[0], replay, narrow[1:2])
    by_own = predict(narrow[0], replay, narrow[1:])
    assert by_published.quantile(0.95) / by_published.seconds == pytest.approx(1.83, abs=0.02)
    assert by_own.quantile(0.95) / by_own.seconds == pytest.approx(math.exp(2.92 * 0.01 * 2**0.5), abs=1e-3)
    assert by_own.quantile(0.05) * by_own.quantile(0.95) == pytest.approx(by_own.seconds**2)


def test_runs_that_scatter_widen_the_interval() -> None:
    chance = random.Random(1)
    times = [chance.lognormvariate(0.0, 0.15) for _ in range(30)]
    scattered = SystemRuns("reference", runs(*((t, t) for t in times)), runs(*((t, t) for t in times)))
    steady = SystemRuns("reference", runs((1.0, 1.0), (1.0, 1.0)), runs((1.0, 1.0), (1.0, 1.0)))
    replay = target(*runs((1.0, 1.0), (1.0, 1.0)))
    wide, narrow = (predict(known, replay).quantile(0.95) for known in (scattered, steady))
    assert wide / predict(scattered, replay).seconds > narrow / predict(steady, replay).seconds * 1.05


@pytest.mark.parametrize(
    ("on_the_reference", "on_the_target"), [(0.04, 0.04), (0.01, 0.04)], ids=["as steady", "less steady"]
)
def test_intervals_hold_on_a_target_that_scatters_otherwise(
    on_the_reference: float, on_the_target: float
) -> None:
    chance = random.Random(3)

    def some_runs(scatter: float, n: int = 5) -> Sequence[IoRun]:
        return runs(*((chance.lognormvariate(0.0, scatter), 0.0) for _ in range(n)))

    def is_held() -> bool:
        known = [
            SystemRuns(name, some_runs(on_the_reference), some_runs(on_the_reference)) for name in "abcd"
        ]
        prediction = predict(known[0], target(*some_runs(on_the_target)), known[1:])
        (actual,) = some_runs(on_the_target, n=1)
        return prediction.quantile(0.05) <= actual.seconds <= prediction.quantile(0.95)

    assert sum(is_held() for _ in range(200)) / 200 >= 0.85


def test_without_a_replay_on_the_target_there_is_no_prediction() -> None:
    with pytest.raises(NoPrediction, match="no replay has run on target") as refused:
        predict(REFERENCE, target())
    assert refused.value.code == "no_replay"


def test_one_run_with_a_replay_is_too_few() -> None:
    reference = SystemRuns("reference", runs((10.0, 4.0), (10.0, 4.0)), [])
    with pytest.raises(NoPrediction, match="0 of 2 runs of the application have a replay") as refused:
        predict(reference, target(*runs((1.0, 1.0))))
    assert refused.value.code == "no_replay"


def test_a_replay_of_other_calls_is_refused() -> None:
    with pytest.raises(NoPrediction, match="a replay has no calls of the class write"):
        predict(REFERENCE, target(IoRun(0.0, {"read": IoTime(1.0)})))


def test_a_replay_may_lack_a_class_that_takes_no_time() -> None:
    def run(started: float, closing: float) -> IoRun:
        return IoRun(started, {"read": IoTime(10.0), "metadata": IoTime(closing)})

    replays = [IoRun(day * DAY, {"read": IoTime(10.0)}) for day in (0, 1)]
    reference = SystemRuns("reference", [run(0.0, 0.01), run(DAY, 0.01)], replays)
    prediction = predict(reference, target(IoRun(0.0, {"read": IoTime(20.0)})))
    assert prediction.seconds == pytest.approx(20.0)
    slow = SystemRuns("reference", [run(0.0, 1.0), run(DAY, 1.0)], replays)
    with pytest.raises(NoPrediction, match="a replay has no calls of the class metadata"):
        predict(slow, target(IoRun(0.0, {"read": IoTime(20.0)})))


def test_old_replays_are_stale() -> None:
    replay = target(*runs((1.0, 1.0)))
    predict(REFERENCE, replay, at_seconds=0.9 * DAY)
    with pytest.raises(NoPrediction, match=r"the newest replay on target is 3\.0 days old") as refused:
        predict(REFERENCE, replay, at_seconds=3 * DAY)
    assert refused.value.code == "stale"


def test_an_unfaithful_replay_on_any_known_system_is_refused() -> None:
    other = SystemRuns("other", runs((3.0, 3.0), (3.0, 3.0)), runs((1.0, 1.0), (1.0, 1.0)))
    with pytest.raises(NoPrediction, match="on other the application takes"):
        predict(REFERENCE, target(*runs((1.0, 1.0))), [other])
