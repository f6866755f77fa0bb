"""The performance of a series is described from its passed runs, by stage and total."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone

from monitor.analysis.performance.passed_runs import PassedRuns, read
from monitor.analysis.performance.probe_correlation import Lag, partners
from monitor.analysis.performance.recorded_changes import environment_changes
from monitor.analysis.performance.series_statistics import NoPassedRuns, SeriesStatistics, series_statistics
from monitor.core.db.timestamps import micros
from monitor.models import ForecastPredictor, ForecastState, MaintenanceWindow, Metric, Series, Site
from reporters import report as wire
from tests.monitor.analysis.performance.runs import (
    HOUR,
    MINUTE,
    another_series,
    ingested,
    ring_runs,
    with_kernel,
)
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON

RING = "stage.transfer_ring.seconds"
NEWER = wire.ProbeIdentity("circle", "99", "0" * 64)


def statistics(
    series: Series, hours: float = 100, *, with_series: list[Series] | None = None
) -> SeriesStatistics:
    return series_statistics(series, NOON, NOON + hours * HOUR, with_series)


def level(before: float, after: float, *, runs: int = 12) -> list[float]:
    """Return durations of two levels with a little noise."""
    return [value + 0.01 * (number % 3) for value in (before, after) for number in range(runs)]


def changes_of(series: Series) -> list[tuple[datetime, list[str]]]:
    points = statistics(series).change_points["total.seconds"]
    return [(found.point.first_after, [change.text for change in found.recorded]) for found in points]


def test_stages_come_in_the_order_of_the_probe_and_totals_leave_stages_out(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    shown = statistics(circle)
    assert list(shown.stages) == [
        f"stage.{name}.seconds" for name in ("init", "transfer_ring", "compare", "cleanup")
    ]
    assert (shown.stages[RING].mean, shown.stages[RING].stdev) == (6.0, 2.0)
    means = {name: figures.mean for name, figures in shown.totals.items()}
    assert means == {"total.seconds": 9.0, "total_essential.seconds": 7.0, "total_core.seconds": 7.0}
    assert (shown.runs, shown.other_runs, shown.complete_runs, shown.segment) == (3, 0, 3, 1)


def test_the_stage_that_fluctuates_has_the_variance(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    shares = statistics(circle).variance_shares
    assert shares[RING] == pytest.approx(1.0)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_only_passed_runs_in_the_window_count(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    ingested([failed_circle_report(NOON + 30 * MINUTE)])
    shown = statistics(circle, 2)
    assert (shown.runs, shown.stages["stage.init.seconds"].n, shown.totals["total.seconds"].max) == (
        2,
        2,
        9.0,
    )


def test_runs_of_other_segments_are_counted_and_not_mixed(circle: Series) -> None:
    ring_runs(NOON, [4.0, 4.0])
    ring_runs(NOON + 2 * HOUR, [6.0], probe=NEWER)
    shown = statistics(circle)
    assert (shown.segment, shown.runs, shown.other_runs, shown.stages[RING].mean) == (2, 1, 2, 6.0)


def test_a_window_without_passed_runs_is_refused(circle: Series) -> None:
    ring_runs(NOON, [4.0])
    ingested([failed_circle_report(NOON + 2 * HOUR)])
    with pytest.raises(NoPassedRuns, match="no run of circle with stages passed"):
        series_statistics(circle, NOON + HOUR, NOON + 3 * HOUR)


def test_a_change_point_names_the_new_version_of_the_probe(circle: Series) -> None:
    values = level(4.0, 8.0)
    ring_runs(NOON, values[:12])
    ring_runs(NOON + 12 * HOUR, values[12:], probe=NEWER)
    version = circle_report(NOON).probe.version
    assert changes_of(circle) == [(NOON + 12 * HOUR, [f"probe circle {version} -> 99"])]


def test_a_change_point_names_the_end_of_maintenance_at_its_sites_only(circle: Series) -> None:
    for name, site in (("disks", "site-of-there"), ("power", "elsewhere")):
        window = MaintenanceWindow.objects.create(
            name=name, starts_at=NOON + 10.5 * HOUR, ends_at=NOON + 11.5 * HOUR
        )
        window.sites.add(Site.objects.get_or_create(name=site)[0])
    ring_runs(NOON, level(4.0, 8.0))
    assert changes_of(circle) == [(NOON + 12 * HOUR, ["maintenance ended: disks"])]


def test_a_change_point_names_the_new_kernel(circle: Series) -> None:
    ingested(
        with_kernel(
            circle_report(NOON + number * HOUR, ring_seconds=seconds), f"Linux 6.{1 + (number >= 12)}"
        )
        for number, seconds in enumerate(level(4.0, 8.0))
    )
    assert changes_of(circle) == [(NOON + 12 * HOUR, ["kernel Linux 6.1 -> Linux 6.2"])]


def test_changes_far_from_a_change_point_are_not_named(circle: Series) -> None:
    values = level(4.0, 8.0)
    ring_runs(NOON, values[:20])
    ring_runs(NOON + 20 * HOUR, values[20:], probe=NEWER)
    assert changes_of(circle) == [(NOON + 12 * HOUR, [])]


def test_environments_differ_by_field_and_by_tool() -> None:
    before = {"hostname": "a", "kernel": "6.1", "tools": {"rsync": "3.2", "gcc": "12"}}
    after = {"hostname": "a", "kernel": "6.2", "tools": {"rsync": "3.4", "ssh": "9"}}
    assert environment_changes(before, after) == [
        "gcc 12 -> unknown",
        "kernel 6.1 -> 6.2",
        "rsync 3.2 -> 3.4",
        "ssh unknown -> 9",
    ]
    assert environment_changes({}, {"tools": None}) == []


def runs_at(*times: tuple[float, float]) -> PassedRuns:
    """Return runs by the minutes of their start and end."""
    started, ended = (
        np.array([micros(NOON + m * MINUTE) for m in column]) for column in zip(*times, strict=True)
    )
    return PassedRuns(started, started, ended, np.ones(len(times), np.int64), {})


@pytest.mark.parametrize(
    ("lag", "expected"),
    [
        # probe runs, in minutes: 0 to 5, 60 to 65, 120 to 125
        (Lag.SIMULTANEOUS, [0, 0, -1, -1, -1, 1, 2]),
        (Lag.RIGHT_AFTER, [-1, -1, 0, 0, -1, -1, -1]),
        (Lag.HALF_HOUR, [-1, -1, -1, -1, 0, 0, 1]),
    ],
)
def test_each_lag_has_its_own_probe_run(lag: Lag, expected: list[int]) -> None:
    application = runs_at((0, 2), (4, 9), (5, 9), (34.9, 36), (35, 36), (59, 61), (110, 121))
    assert partners(application, runs_at((0, 5), (60, 65), (120, 125)), lag).tolist() == expected


def test_a_series_without_probe_runs_has_no_partners(circle: Series) -> None:
    nothing = read(circle, NOON, NOON + HOUR)
    for lag in Lag:
        assert partners(runs_at((0, 2)), nothing, lag).tolist() == [-1]


def test_an_application_is_correlated_with_the_stages_of_its_probe(circle: Series) -> None:
    application = another_series("app", circle)
    seconds = [4.0, 7.0, 5.0, 9.0, 6.0]
    ring_runs(NOON, seconds)
    ring_runs(NOON + 10 * MINUTE, [2 * value for value in seconds], series="app")
    (found,) = statistics(application, with_series=[circle]).correlations
    cells = {
        (lag, cell.application, cell.probe): cell for lag, all_of in found.by_lag.items() for cell in all_of
    }
    assert len(cells) == 3 * 7 * 7
    after = cells[Lag.RIGHT_AFTER, RING, RING]
    assert (found.probe, after.n) == ("circle", 5)
    assert after.r == pytest.approx(1.0)
    assert after.p == pytest.approx(0.0)
    assert cells[Lag.RIGHT_AFTER, RING, "stage.init.seconds"].r is None  # the probe's init is constant
    assert cells[Lag.SIMULTANEOUS, RING, RING].n == cells[Lag.HALF_HOUR, RING, RING].n == 0


def test_the_predictors_of_its_metrics_are_the_probes_of_a_series(circle: Series) -> None:
    application = another_series("app", circle)
    ring_runs(NOON, [4.0, 5.0])
    ring_runs(NOON, [4.0, 5.0], series="app")
    assert not statistics(application).correlations
    metric = Metric.objects.get(segment__series=application, name="total.seconds")
    ForecastState.objects.get_or_create(metric=metric)
    ForecastPredictor.objects.create(metric=metric, series=circle, name="total.seconds")
    assert [found.probe for found in statistics(application).correlations] == ["circle"]


def test_a_run_counts_from_its_start_not_from_its_slot(circle: Series) -> None:
    late = circle_report(NOON, started_at=NOON + 5 * MINUTE)
    ingested([late])
    runs = read(circle, NOON, NOON + timedelta(seconds=1))
    assert (runs.slots[0], runs.started[0]) == (micros(NOON), micros(NOON + 5 * MINUTE))
    assert runs.ended[0] > runs.started[0]
    assert micros(timezone.now()) > runs.ended[0]
