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

from monitor.db.timestamps import micros
from monitor.depot.engines.engine import Engine
from monitor.depot.rollups.histogram import histogram
from monitor.depot.rollups.statistics import EVERY, MOST_READ, Every, statistics, statistics_by
from monitor.depot.samples import export
from monitor.depot.samples.downsampled import downsample
from monitor.depot.samples.read import history
from monitor.gridfile.define import SeriesDefinition, define
from monitor.models import Correction, Series, Suite
from monitor.overview.latest import UNKNOWN, latest
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
    of=metrics,
    is_rebuilt=st.booleans(),
)


@any_history
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_equal_those_of_lists_in_memory(
    two_series: list[Series],
    before: list[Step],
    changes: list[Step],
    window: list[datetime],
    of: MetricKey,
    is_rebuilt: bool,
) -> None:
    check_depot(two_series, before, changes, window, of, is_rebuilt)


@pytest.mark.nightly
@any_history
@settings(max_examples=NIGHTLY_EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_after_many_histories_equal_those_of_lists_in_memory(
    two_series: list[Series],
    before: list[Step],
    changes: list[Step],
    window: list[datetime],
    of: MetricKey,
    is_rebuilt: bool,
) -> None:
    check_depot(two_series, before, changes, window, of, is_rebuilt)


def check_depot(
    two_series: list[Series],
    before: list[Step],
    changes: list[Step],
    window: list[datetime],
    of: MetricKey,
    is_rebuilt: bool,
) -> None:
    depot = ComparedDepot(two_series)
    for step in [*before, Step("roll_everything"), *changes]:
        step.apply(depot)
    check_whole_days(depot, of)
    depot.end_retention()
    check_answers(depot, of, *window)
    (rebuild_all if is_rebuilt else roll_everything)(depot)
    check_answers(depot, of, *window)
    check_corrections(depot)


def check_whole_days(depot: ComparedDepot, of: MetricKey) -> None:
    """Check that no kept day is missing, however far retention has come."""
    metric = depot.metric(of)
    expected = depot.model.covered(of, FIRST, END)
    found = statistics_by(metric, FIRST, END).buckets if metric else []
    buckets = {bucket.start: (bucket.n, bucket.min, bucket.max) for bucket in found}
    for start, its in grouped(expected, "day").items():
        exact = figures(its)
        assert buckets[start] == (exact["n"], exact["min"], exact["max"])


def check_answers(depot: ComparedDepot, of: MetricKey, start: datetime, end: datetime) -> None:
    check_history(depot)
    for most_read in (MOST_READ, FEW):
        check_statistics(depot, of, start, end, most_read)
        for every in EVERY:
            check_statistics_by(depot, of, start, end, every, most_read)
        check_histogram(depot, of, start, end, most_read)
    check_chart(depot, of, start, end)
    check_export(depot, of.series, start, end)
    check_latest(depot, of.series)


def check_history(depot: ComparedDepot) -> None:
    for of in EACH:
        metric = depot.metric(of)
        found = history(metric, passed_only=False) if metric else []
        assert [(one.time, one.known_at, one.value, one.passed) for one in found] == [
            (time, one.known_at, one.value, one.passed)
            for time, one in depot.model.sampled(of, FIRST, END).items()
        ]


def check_statistics(
    depot: ComparedDepot, of: MetricKey, start: datetime, end: datetime, most_read: int
) -> None:
    metric = depot.metric(of)
    if metric is None:
        assert not depot.model.covered(of, FIRST, END)
        return
    found = statistics(metric, start, end, most_read=most_read)
    agree(found.figures, figures(depot.model.covered(of, start, end).values()))
    assert depot.model.is_complete(of, start, end) in {found.complete, None}
    sampled = depot.model.sampled(of, start, end)
    assert found.newest_known_at == (sampled[max(sampled)].known_at if sampled else None)


def grouped(values: Mapping[datetime, Value], every: Every) -> dict[datetime, list[Value]]:
    found: dict[datetime, list[Value]] = {}
    for time, one in values.items():
        found.setdefault(start_of(time, every), []).append(one)
    return found


def check_statistics_by(
    depot: ComparedDepot, of: MetricKey, start: datetime, end: datetime, every: Every, most_read: int
) -> None:
    metric = depot.metric(of)
    if metric is None:
        return
    expected = grouped(depot.model.covered(of, start, end, HOUR if every == "hour" else DAY), every)
    found = statistics_by(metric, start, end, every, most_read=most_read)
    assert [bucket.start for bucket in found.buckets] == list(expected)
    for bucket in found.buckets:
        agree(bucket, figures(expected[bucket.start]))


def check_histogram(
    depot: ComparedDepot, of: MetricKey, start: datetime, end: datetime, most_read: int
) -> None:
    """Check the counts of few days with samples, which are exact."""
    metric = depot.metric(of)
    if metric is None:
        return
    found = histogram(metric, start, end, bins=5, most_read=most_read)
    numbers = [one.value for one in depot.model.covered(of, start, end).values() if one.passed]
    assert found.n == sum(found.counts) == len(numbers)
    if numbers:
        assert near(found.edges[0], min(numbers), relative=0.0101, absolute=1e-9)
        assert near(found.edges[-1], max(numbers), relative=0.0101, absolute=1e-9)
    if found.exact:
        for least, most, count in zip(found.edges, found.edges[1:], found.counts, strict=False):
            last = most == found.edges[-1]
            assert count == sum(least <= number < most or (last and number == most) for number in numbers)


def check_chart(depot: ComparedDepot, of: MetricKey, start: datetime, end: datetime) -> None:
    """Check the chart; deleted samples are shown by the hour or, where that shows more, by the day."""
    metric = depot.metric(of)
    if metric is None:
        return
    known = [depot.model.covered(of, start, end, tier) for tier in (HOUR, DAY)]
    n, least, most = max(_extent(one.values()) for one in known)
    found = downsample(metric, start=start, end=end, points=10_000)
    assert found.n == n
    if n:
        lowest = found.value if found.lowest is None else found.lowest
        highest = found.value if found.highest is None else found.highest
        assert (lowest.min(), highest.max()) == (least, most)


def _extent(values: Iterable[Value]) -> tuple[int, float, float]:
    """Return count, minimum and maximum of the values of passed runs."""
    numbers = [one.value for one in values if one.passed]
    return len(numbers), min(numbers, default=0.0), max(numbers, default=0.0)


def check_export(depot: ComparedDepot, series: str, start: datetime, end: datetime) -> None:
    """Check the number of rows: one per value, and one per run that did not pass."""
    found = list(export.values(depot.series[series], start=start, end=end))
    runs = [(slot, of, value) for slot, of, value in depot.model.runs(series) if start <= slot < end]
    expected = sum((slot in depot.model.samples.get(of, {})) + (not value.passed) for slot, of, value in runs)
    assert len(found) == expected


def check_latest(depot: ComparedDepot, series: str) -> None:
    now = max(depot.now, END)
    found = latest(Series.objects.filter(name=series), now)
    for mean, its in zip(found.means[0].tolist(), depot.model.lately(series, now), strict=True):
        largest = max(map(abs, its), default=0.0)
        exact = fmean(its) if its else None
        actual = None if math.isnan(mean) else mean
        assert near(actual, exact, relative=1e-6, absolute=1e-7 * largest + 1e-29)
    runs = depot.model.runs(series)
    if not runs:
        assert found.slot.tolist() == [UNKNOWN]
        return
    newest_slot, _, newest = runs[-1]
    outcomes = "".join("p" if value.passed else "f" for _, _, value in runs[-TREND_RUNS:])
    assert b"".join(found.outcomes[0].tolist()).decode().strip() == outcomes
    assert found.slot.tolist() == [micros(newest_slot)]
    assert found.age.tolist() == [max((now - newest.known_at).total_seconds(), 0.0)]


def check_corrections(depot: ComparedDepot) -> None:
    """Check the stored corrections."""
    found = Correction.objects.order_by("pk").values_list(
        "metric", "time", "old_value", "old_passed", "new_value", "new_passed", "parser_version"
    )
    keys = {of: metric.pk for of in EACH if (metric := depot.metric(of))}
    expected = [
        (
            keys[one.of],
            one.time,
            *(one.old or (None, None)),
            *(one.new or (None, None)),
            one.version,
        )
        for one in depot.model.corrected
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)
