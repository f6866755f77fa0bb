"""Model test: statistics of a depot with rollups equal those of a list in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.depot.engines.engine import Engine
from monitor.depot.rollups.combine import SummaryStatistics
from monitor.depot.rollups.histogram import histogram
from monitor.depot.rollups.statistics import EVERY, MOST_READ, Every, statistics, statistics_by
from monitor.depot.rollups.worker import rebuild, roll
from monitor.depot.samples.read import history
from monitor.models import DayRollup, DirtyHour, HourRollup, Metric, Sample, Series
from tests.monitor.depot.sample_model import DAYS, FIRST, STEP, Depot, Value, figures, metrics_of, start_of
from tests.rollups import roll_all

EXAMPLES, NIGHTLY_EXAMPLES = 6, 100
STEPS = DAYS * 144
METRICS = 2
FEW = 20  # samples that are read; the database aggregates more
WITHIN = 0.0101  # relative: the error of a sketch, and the edge of a bucket

times = st.integers(0, STEPS - 1).map(lambda step: FIRST + step * STEP)
numbers = st.one_of(
    st.floats(0.001, 1e4), st.sampled_from([0.0, -1.5, 1e-12, 3.0, 3.0, 1e18]), st.floats(-1e4, -0.001)
)
values = st.builds(
    lambda late, number, passed: (late, number, passed),
    st.integers(0, 100_000),
    numbers,
    st.booleans() | st.just(True),
)
metric_numbers = st.integers(0, METRICS - 1)


@dataclass(frozen=True)
class Step:
    """One change of the depot, and its name in a printed example."""

    name: str
    arguments: Any

    def apply(self, depot: Depot) -> None:
        CHANGES[self.name](depot, *self.arguments)


def ingest(depot: Depot, number: int, new: Mapping[datetime, tuple[int, float, bool]]) -> None:
    expected = {
        at: Value(at + timedelta(seconds=late), value, passed) for at, (late, value, passed) in new.items()
    }
    depot.ingest(depot.metrics[number], expected)


def fill(depot: Depot, number: int, day: int, number_of: int, seed: int) -> None:
    """Fill a day with so many samples that it has hourly rollups."""
    at = [FIRST + timedelta(days=day) + step * STEP for step in range(number_of)]
    new = {
        time: Value(time, 1 + (seed * 7919 + step * 104729) % 1000 / 7, (seed + step) % 11 != 0)
        for step, time in enumerate(at)
    }
    depot.ingest(depot.metrics[number], new)


def correct(depot: Depot, number: int, pick: int, value: float, passed: bool) -> None:
    metric = depot.metrics[number]
    times = sorted(depot.model.values.get(metric.pk, {}))
    if times:
        depot.correct(metric, times[pick % len(times)], value, passed)


def remove(depot: Depot, number: int, before: datetime) -> None:
    depot.remove(depot.metrics[number], before)


def roll_until(_: Depot, now: datetime) -> None:
    roll(now)


def roll_everything(_: Depot) -> None:
    roll_all()
    assert not DirtyHour.objects.exists()


def rebuild_all(_: Depot) -> None:
    for _progress in rebuild():
        pass


def begin_to_rebuild(_: Depot) -> None:
    """Start a rebuild that is killed after its first step."""
    next(rebuild())


CHANGES: dict[str, Callable[..., None]] = {
    change.__name__: change
    for change in (ingest, fill, correct, remove, roll_until, roll_everything, rebuild_all, begin_to_rebuild)
}
midnights = st.integers(1, DAYS).map(lambda day: FIRST + timedelta(days=day))
batches = st.dictionaries(times, values, min_size=1, max_size=10)
arrivals = st.builds(Step, st.just("ingest"), st.tuples(metric_numbers, batches)) | st.builds(
    Step,
    st.just("fill"),
    st.tuples(metric_numbers, st.integers(0, DAYS - 1), st.sampled_from([47, 49, 144]), st.integers(0, 9)),
)
steps = st.one_of(
    arrivals,
    st.builds(
        Step, st.just("correct"), st.tuples(metric_numbers, st.integers(0, 10_000), numbers, st.booleans())
    ),
    st.builds(Step, st.just("remove"), st.tuples(metric_numbers, times | midnights)),
    st.builds(Step, st.just("roll_until"), st.tuples(times)),
    st.builds(Step, st.sampled_from(["roll_everything", "rebuild_all", "begin_to_rebuild"]), st.just(())),
)
windows = st.tuples(times, times).map(sorted) | st.just([FIRST, FIRST + DAYS * timedelta(days=1)])


@pytest.fixture
def metrics(depot_engine: Engine, circle: Series) -> list[Metric]:
    return metrics_of(circle, METRICS)


any_history = given(
    before=st.lists(arrivals, max_size=3),
    changes=st.lists(steps, min_size=1, max_size=6),
    window=windows,
    number=metric_numbers,
)


@any_history
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_statistics_equal_those_of_a_list_in_memory(
    metrics: list[Metric], before: list[Step], changes: list[Step], window: list[datetime], number: int
) -> None:
    check_history(metrics, before, changes, window, number)


@pytest.mark.nightly
@any_history
@settings(max_examples=NIGHTLY_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_statistics_of_many_histories_equal_those_of_a_list_in_memory(
    metrics: list[Metric], before: list[Step], changes: list[Step], window: list[datetime], number: int
) -> None:
    check_history(metrics, before, changes, window, number)


def check_history(
    metrics: list[Metric], before: list[Step], changes: list[Step], window: list[datetime], number: int
) -> None:
    empty()
    depot = Depot(metrics)
    for step in [*before, Step("roll_everything", ()), *changes]:
        step.apply(depot)
    check_answers(depot, metrics[number], *window)
    roll_everything(depot)
    check_answers(depot, metrics[number], *window)


def check_answers(depot: Depot, metric: Metric, start: datetime, end: datetime) -> None:
    expected = depot.model.within(metric.pk, start, end)
    for most_read in (MOST_READ, FEW):
        check_statistics(metric, start, end, expected, most_read)
        for every in EVERY:
            check_statistics_by(metric, start, end, every, expected, most_read)
    check_histogram(metric, start, end, expected)
    assert [(point.time, point.value, point.passed) for point in history(metric, passed_only=False)] == [
        (time, value.value, value.passed)
        for time, value in depot.model.within(metric.pk, FIRST, FIRST + timedelta(days=DAYS)).items()
    ]


def empty() -> None:
    for model in (Sample, HourRollup, DayRollup, DirtyHour):
        model.objects.all().delete()


def check_statistics(
    metric: Metric, start: datetime, end: datetime, expected: Mapping[datetime, Value], most_read: int
) -> None:
    result = statistics(metric, start, end, most_read=most_read)
    agree(result.figures, figures(expected.values()))
    newest = expected[max(expected)].known_at if expected else None
    assert result.newest_known_at == newest


def check_statistics_by(
    metric: Metric,
    start: datetime,
    end: datetime,
    every: Every,
    expected: Mapping[datetime, Value],
    most_read: int,
) -> None:
    grouped: dict[datetime, list[Value]] = {}
    for time, value in expected.items():
        grouped.setdefault(start_of(time, every), []).append(value)
    result = statistics_by(metric, start, end, every, most_read=most_read)
    assert [bucket.start for bucket in result.buckets] == list(grouped)
    for bucket in result.buckets:
        agree(bucket, figures(grouped[bucket.start]))


def check_histogram(
    metric: Metric, start: datetime, end: datetime, expected: Mapping[datetime, Value]
) -> None:
    """Check the counts of few days, which are exact."""
    result = histogram(metric, start, end, bins=5)
    numbers = [value.value for value in expected.values() if value.passed]
    assert result.n == sum(result.counts) == len(numbers)
    for least, most, count in zip(result.edges, result.edges[1:], result.counts, strict=False):
        last = most == result.edges[-1]
        assert count == sum(least <= number < most or (last and number == most) for number in numbers)


def agree(figures: SummaryStatistics, expected: Mapping[str, float | int | None]) -> None:
    """Counts and extremes are the same, sums nearly, quantiles within what sketches promise."""
    actual = msgspec.structs.asdict(figures)
    for name in ("n", "passed", "min", "max"):
        assert actual[name] == expected[name], name
    largest = max(abs(expected["min"] or 0), abs(expected["max"] or 0))
    assert near(actual["mean"], expected["mean"], relative=1e-9, absolute=1e-12 * largest)
    assert near(actual["stdev"], expected["stdev"], relative=1e-9, absolute=1e-7 * largest)
    for name in ("p50", "p95", "p99"):
        assert near(actual[name], expected[name], relative=WITHIN, absolute=1e-9), name


def near(actual: float | None, expected: float | None, *, relative: float, absolute: float) -> bool:
    if actual is None or expected is None:
        return actual is expected
    return abs(actual - expected) <= max(relative * abs(expected), absolute)
