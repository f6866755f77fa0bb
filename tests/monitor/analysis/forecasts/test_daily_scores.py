"""Scores of forecasts are summed by day, suite, site, metric and method."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.daily_scores import ScoredForecast, add, prune
from monitor.models import DayScore, Metric, Segment, Series, Site, Suite
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report


@pytest.fixture
def total(circle: Series, noon: datetime) -> int:
    ingest(wire.to_json(circle_report(noon)))
    return Metric.objects.get(name="total.seconds").pk


@pytest.fixture
def scored(total: int, noon: datetime) -> ScoredForecast:
    """Return a forecast of 9, with baseline 6 and actual value 10: on the end of the 90 % interval."""
    place = QUANTILE_LEVELS.index(0.95)
    return ScoredForecast(
        metric=total,
        method="auto",
        at=None,
        truth_time=noon,
        truth=10.0,
        median=9.0,
        last_value=6.0,
        below=place,
        upto=place + 1,
    )


def everywhere() -> DayScore:
    return DayScore.objects.get(site=None)


def test_a_forecast_counts_once_and_at_each_of_its_sites(scored: ScoredForecast) -> None:
    add([scored])
    sites = DayScore.objects.exclude(site=None).values_list("site__name", "n")
    assert sorted(sites) == [("site-of-here", 1), ("site-of-there", 1)]
    assert (everywhere().n, everywhere().day) == (1, date(2026, 3, 1))
    assert (everywhere().metric, everywhere().unit, everywhere().method) == (
        "total.seconds",
        "seconds",
        "auto",
    )


def test_metrics_of_one_name_in_two_units_are_counted_apart(scored: ScoredForecast, noon: datetime) -> None:
    segment = Metric.objects.get(pk=scored.metric).segment
    later = Segment.objects.create(series=segment.series, number=2, began_at=noon, fingerprint="other")
    other = Metric.objects.create(segment=later, name="total.seconds", unit="ticks")
    add([scored, scored._replace(metric=other.pk)])
    assert sorted(DayScore.objects.filter(site=None).values_list("unit", "n")) == [
        ("seconds", 1),
        ("ticks", 1),
    ]


def test_errors_are_those_of_the_median_and_of_the_baseline(scored: ScoredForecast) -> None:
    add([scored, scored._replace(last_value=None, truth=0.0)])
    score = everywhere()
    assert (score.n, score.absolute_error) == (2, 10.0)
    assert (score.last_value_n, score.last_value_error, score.compared_error) == (1, 4.0, 1.0)
    assert score.actual == 10.0


@pytest.mark.parametrize(
    ("below", "upto", "within"),
    [
        (0, 0, (0, 0)),  # less than all of them
        (len(QUANTILE_LEVELS), len(QUANTILE_LEVELS), (0, 0)),
        (QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.1) + 1, (1, 1)),  # on the lower end
        (QUANTILE_LEVELS.index(0.9), QUANTILE_LEVELS.index(0.9) + 1, (1, 1)),
        (QUANTILE_LEVELS.index(0.05) + 1, QUANTILE_LEVELS.index(0.05) + 1, (0, 1)),  # between 5 and 10 %
        (QUANTILE_LEVELS.index(0.95) + 1, QUANTILE_LEVELS.index(0.95) + 1, (0, 0)),
        (0, len(QUANTILE_LEVELS), (1, 1)),  # all quantiles equal the actual value
    ],
)
def test_an_actual_value_on_the_end_of_an_interval_is_inside(
    scored: ScoredForecast, below: int, upto: int, within: tuple[int, int]
) -> None:
    add([scored._replace(below=below, upto=upto)])
    assert (everywhere().interval_n, everywhere().within_80, everywhere().within_90) == (1, *within)


def test_without_quantiles_no_interval_is_counted(scored: ScoredForecast) -> None:
    add([scored._replace(below=None, upto=None)])
    assert (everywhere().interval_n, everywhere().within_80) == (0, 0)


def test_later_scores_are_added_to_their_day(scored: ScoredForecast) -> None:
    add([scored])
    add([scored, scored._replace(truth_time=scored.truth_time + timedelta(days=1))])
    days = DayScore.objects.filter(site=None).order_by("day").values_list("n", "interval_n")
    assert list(days) == [(2, 2), (1, 1)]


def test_sums_of_the_largest_errors_are_finite(scored: ScoredForecast) -> None:
    huge = scored._replace(truth=1e300, median=-1e300, last_value=1e-300)
    add([huge] * 3)
    add([huge, huge._replace(truth=5e-324)])
    assert everywhere().n == 5


def test_a_deleted_metric_is_not_counted(scored: ScoredForecast) -> None:
    add([scored._replace(metric=0)])
    assert not DayScore.objects.exists()
    Site.objects.filter(name="site-of-here").update(title="there still")
    add([])


def test_days_are_kept_as_long_as_their_suite_keeps_rollups_of_days(
    scored: ScoredForecast, noon: datetime
) -> None:
    add([scored, scored._replace(truth_time=noon + timedelta(days=10))])
    later = noon + timedelta(days=40)
    assert prune(later) == 0  # for ever
    Suite.objects.update(keep_samples_days=9, keep_hourly_days=20, keep_daily_days=35)
    assert prune(later) > 0
    assert {row.day for row in DayScore.objects.all()} == {(noon + timedelta(days=10)).date()}
