"""Model test: after any sequence of changes the depot answers like lists in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.core.db.timestamps import micros
from monitor.depot.engines.engine import Engine
from monitor.depot.rollups.histogram import histogram
from monitor.depot.rollups.statistics import EVERY, MOST_READ, Every, statistics, statistics_by
from monitor.depot.samples import export
from monitor.depot.samples.downsampled import downsample
from monitor.depot.samples.read import history
from monitor.models import Correction, Series, Suite
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.web.status.latest import UNKNOWN, latest
from reporters.config import ResourceConfig
from tests.monitor.depot.changes import (
    EACH,
    END,
    NAMES,
    Step,
    arrivals,
    metrics,
    rebuild_all,
    roll_everything,
    steps,
    windows,
)
from tests.monitor.depot.compared_depot import ComparedDepot
from tests.monitor.depot.depot_model import DAY, HOUR, MetricKey
from tests.monitor.depot.rollups.test_rollups_model import FEW, agree, near
from tests.monitor.depot.sample_model import FIRST, Value, figures, start_of

EXAMPLES, NIGHTLY_EXAMPLES = 6, 100
TREND_RUNS = 20


@pytest.fixture
def two_series(depot_engine: Engine, tmp_path: Path) -> list[Series]:
    resources = [ResourceConfig(name, f"site-of-{name}", str(tmp_path)) for name in ("here", "there")]
    bindings = {"ring": ["here", "there"]}
    define(resources, [SeriesDefinition(name, "circle", bindings, {"file_bytes": 1000}) for name in NAMES])
    for name in NAMES:
        Series.objects.filter(name=name).update(suite=Suite.objects.create(name=name))
    return list(Series.objects.order_by("name"))


any_history = given(
    before=st.lists(arrivals, max_size=3),
    changes=st.lists(steps, min_size=1, max_size=8),
    window=windows,
    key=metrics,
    is_rebuilt=st.booleans(),
)


@any_history
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_equal_those_of_lists_in_memory(
    two_series: list[Series],
    before: list[Step],
    changes: list[Step],
    window: list[datetime],
    key: MetricKey,
    is_rebuilt: bool,
) -> None:
    check_depot(two_series, before, changes, window, key, is_rebuilt)


@pytest.mark.nightly
@any_history
@settings(max_examples=NIGHTLY_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_after_many_histories_equal_those_of_lists_in_memory(
    two_series: list[Series],
    before: list[Step],
    changes: list[Step],
    window: list[datetime],
    key: MetricKey,
    is_rebuilt: bool,
) -> None:
    check_depot(two_series, before, changes, window, key, is_rebuilt)


def check_depot(
    two_series: list[Series],
    before: list[Step],
    changes: list[Step],
    window: list[datetime],
    key: MetricKey,
    is_rebuilt: bool,
) -> None:
    depot = ComparedDepot(two_series)
    for step in [*before, Step("roll_everything"), *changes]:
        step.apply(depot)
    check_whole_days(depot, key)
    depot.end_retention()
    check_answers(depot, key, *window)
    (rebuild_all if is_rebuilt else roll_everything)(depot)
    check_answers(depot, key, *window)
    check_corrections(depot)


def check_whole_days(depot: ComparedDepot, key: MetricKey) -> None:
    """Check that no kept day is missing, however far retention has come."""
    metric = depot.metric(key)
    expected = depot.model.covered(key, FIRST, END)
    actual = statistics_by(metric, FIRST, END).buckets if metric else []
    buckets = {bucket.start: (bucket.n, bucket.min, bucket.max) for bucket in actual}
    for start, its in grouped(expected, "day").items():
        exact = figures(its)
        assert buckets[start] == (exact["n"], exact["min"], exact["max"])


def check_answers(depot: ComparedDepot, key: MetricKey, start: datetime, end: datetime) -> None:
    check_history(depot)
    for most_read in (MOST_READ, FEW):
        check_statistics(depot, key, start, end, most_read)
        for every in EVERY:
            check_statistics_by(depot, key, start, end, every, most_read)
        check_histogram(depot, key, start, end, most_read)
    check_chart(depot, key, start, end)
    check_export(depot, key.series, start, end)
    check_latest(depot, key.series)


def check_history(depot: ComparedDepot) -> None:
    for key in EACH:
        metric = depot.metric(key)
        points = history(metric, passed_only=False) if metric else []
        assert [(point.time, point.known_at, point.value, point.passed) for point in points] == [
            (time, value.known_at, value.value, value.passed)
            for time, value in depot.model.sampled(key, FIRST, END).items()
        ]


def check_statistics(
    depot: ComparedDepot, key: MetricKey, start: datetime, end: datetime, most_read: int
) -> None:
    metric = depot.metric(key)
    if metric is None:
        assert not depot.model.covered(key, FIRST, END)
        return
    result = statistics(metric, start, end, most_read=most_read)
    agree(result.figures, figures(depot.model.covered(key, start, end).values()))
    assert depot.model.is_complete(key, start, end) in {result.complete, None}
    sampled = depot.model.sampled(key, start, end)
    assert result.newest_known_at == (sampled[max(sampled)].known_at if sampled else None)


def grouped(values: Mapping[datetime, Value], every: Every) -> dict[datetime, list[Value]]:
    buckets: dict[datetime, list[Value]] = {}
    for time, value in values.items():
        buckets.setdefault(start_of(time, every), []).append(value)
    return buckets


def check_statistics_by(
    depot: ComparedDepot, key: MetricKey, start: datetime, end: datetime, every: Every, most_read: int
) -> None:
    metric = depot.metric(key)
    if metric is None:
        return
    expected = grouped(depot.model.covered(key, start, end, HOUR if every == "hour" else DAY), every)
    result = statistics_by(metric, start, end, every, most_read=most_read)
    assert [bucket.start for bucket in result.buckets] == list(expected)
    for bucket in result.buckets:
        agree(bucket, figures(expected[bucket.start]))


def check_histogram(
    depot: ComparedDepot, key: MetricKey, start: datetime, end: datetime, most_read: int
) -> None:
    """Check the counts of few days with samples, which are exact."""
    metric = depot.metric(key)
    if metric is None:
        return
    result = histogram(metric, start, end, bins=5, most_read=most_read)
    numbers = [value.value for value in depot.model.covered(key, start, end).values() if value.passed]
    assert result.n == sum(result.counts) == len(numbers)
    if numbers:
        assert near(result.edges[0], min(numbers), relative=0.0101, absolute=1e-9)
        assert near(result.edges[-1], max(numbers), relative=0.0101, absolute=1e-9)
    if result.exact:
        for least, most, count in zip(result.edges, result.edges[1:], result.counts, strict=False):
            last = most == result.edges[-1]
            assert count == sum(least <= number < most or (last and number == most) for number in numbers)


def check_chart(depot: ComparedDepot, key: MetricKey, start: datetime, end: datetime) -> None:
    """Check the chart; deleted samples are shown by the hour or, where that shows more, by the day."""
    metric = depot.metric(key)
    if metric is None:
        return
    buckets_by_tier = [depot.model.covered(key, start, end, tier) for tier in (HOUR, DAY)]
    n, least, most = max(_extent(buckets.values()) for buckets in buckets_by_tier)
    result = downsample(metric, start=start, end=end, points=10_000)
    assert result.n == n
    if n:
        lowest = result.value if result.lowest is None else result.lowest
        highest = result.value if result.highest is None else result.highest
        assert (lowest.min(), highest.max()) == (least, most)


def _extent(values: Iterable[Value]) -> tuple[int, float, float]:
    """Return count, minimum and maximum of the values of passed runs."""
    numbers = [value.value for value in values if value.passed]
    return len(numbers), min(numbers, default=0.0), max(numbers, default=0.0)


def check_export(depot: ComparedDepot, series: str, start: datetime, end: datetime) -> None:
    """Check the number of rows: one per value, and one per run that did not pass."""
    exported = list(export.values(depot.series[series], start=start, end=end))
    runs = [(slot, key, value) for slot, key, value in depot.model.runs(series) if start <= slot < end]
    expected = sum(
        (slot in depot.model.samples.get(key, {})) + (not value.passed) for slot, key, value in runs
    )
    assert len(exported) == expected


def check_latest(depot: ComparedDepot, series: str) -> None:
    now = max(depot.now, END)
    states = latest(Series.objects.filter(name=series), now)
    for mean, its in zip(states.means[0].tolist(), depot.model.lately(series, now), strict=True):
        largest = max(map(abs, its), default=0.0)
        exact = fmean(its) if its else None
        actual = None if math.isnan(mean) else mean
        assert near(actual, exact, relative=1e-6, absolute=1e-7 * largest + 1e-29)
    runs = depot.model.runs(series)
    if not runs:
        assert states.slot.tolist() == [UNKNOWN]
        return
    newest_slot, _, newest = runs[-1]
    outcomes = "".join("p" if value.passed else "f" for _, _, value in runs[-TREND_RUNS:])
    assert b"".join(states.outcomes[0].tolist()).decode().strip() == outcomes
    assert states.slot.tolist() == [micros(newest_slot)]
    assert states.age.tolist() == [max((now - newest.known_at).total_seconds(), 0.0)]


def check_corrections(depot: ComparedDepot) -> None:
    """Check the stored corrections."""
    corrections = Correction.objects.order_by("pk").values_list(
        "metric", "time", "old_value", "old_passed", "new_value", "new_passed", "parser_version"
    )
    keys = {key: metric.pk for key in EACH if (metric := depot.metric(key))}
    expected = [
        (
            keys[correction.key],
            correction.time,
            *(correction.old or (None, None)),
            *(correction.new or (None, None)),
            correction.version,
        )
        for correction in depot.model.corrected
    ]
    assert sorted(corrections, key=str) == sorted(expected, key=str)
