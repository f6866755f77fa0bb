"""Look up stored forecasts and quantiles, and compute coverage."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.lookup import By, candidates, look_up
from monitor.analysis.forecasts.quantiles import HIGHEST, LOWEST, neighbours, quantile
from monitor.analysis.forecasts.score import ForecastRecord
from monitor.models import Forecast, ForecastState, Metric, Series, Suite
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report

TENFOLD = [10 * probability for probability in QUANTILE_LEVELS]


@pytest.mark.parametrize("probability", [*QUANTILE_LEVELS, 0.0051, 0.15, 0.333, 0.925, 0.9949])
def test_quantiles_between_levels_are_interpolated(probability: float) -> None:
    assert quantile(TENFOLD, probability) == pytest.approx(10 * probability)


def test_the_lowest_and_highest_levels_are_valid() -> None:
    assert neighbours(LOWEST) == (0, 0, 0.0)
    assert neighbours(HIGHEST) == (len(QUANTILE_LEVELS) - 1, len(QUANTILE_LEVELS) - 1, 0.0)


def test_coverage_counts_values_between_two_quantiles_ends_included() -> None:
    less = [round(100 * probability) for probability in QUANTILE_LEVELS]
    most = [many + 5 for many in less]
    assert ForecastRecord(record_n=100, less=less, most=most).coverage(0.8) == pytest.approx(0.85)
    assert ForecastRecord(record_n=100, less=less, most=most).coverage(0.85) == pytest.approx(0.905, abs=0.01)
    assert ForecastRecord().coverage(0.8) is None
    assert ForecastRecord(record_n=100).coverage(0.8) is None


@pytest.fixture
def reader(db: None) -> User:
    return User.objects.create_user("reader")


def test_the_forecast_found_is_that_of_the_current_segment(circle: Series, reader: User) -> None:
    now = timezone.now()
    assert look_up(reader, "circle", "total.seconds", now) is not None
    ingest(wire.to_json(circle_report(now)))
    total = Metric.objects.get(name="total.seconds")
    numbers = {"n": 3, "level": 0.8, "mean": 7.0, "median": 7.0, "lower": 6.0, "upper": 8.0}
    times = {"issued_at": now, "last_time": now, "last_known_at": now}
    forecast = Forecast.objects.create(metric=total, method=METHOD, **numbers, **times)
    ForecastState.objects.update_or_create(metric=total, defaults={"forecast": forecast})
    answer = look_up(reader, "circle", "total.seconds", now)
    assert answer is not None
    assert (answer.metric, answer.mean, answer.path) == (total.pk, 7.0, "ring=here,there")
    Series.objects.update(parameters={"file_bytes": 5000})
    answer = look_up(reader, "circle", "total.seconds", now)
    assert answer is not None
    assert (answer.metric, answer.is_current) == (None, False)


def test_series_of_other_groups_are_invisible(circle: Series, reader: User) -> None:
    Suite.objects.get().viewers.add(staff := Group.objects.create(name="staff"))
    now = timezone.now()
    assert look_up(reader, "circle", "total.seconds", now) is None
    assert look_up(User.objects.create_superuser("root"), "circle", "total.seconds", now) is not None
    reader.groups.add(staff)
    assert look_up(reader, "circle", "total.seconds", now) is not None


def test_series_are_found_by_name_path_and_resources(circle: Series, reader: User) -> None:
    define([], [SeriesDefinition("back", "circle", {"ring": ["there", "here"]})])

    def names(by: By, *asked: str) -> list[str]:
        wanted = candidates(reader, by, asked, application="circle", metric="total.seconds", probability=0.9)
        return sorted(metric.name for metric in wanted)

    assert names("series", "back", "nobody") == ["back"]
    assert names("path", "ring=here,there", "ring=here") == ["circle"]
    assert names("resources", "here,there") == ["back", "circle"]
