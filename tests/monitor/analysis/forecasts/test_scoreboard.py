"""The scoreboard shows scores of visible series by method, metric, site and time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from pytest_django import DjangoAssertNumQueries

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.scoreboard import (
    MOST_RECENT,
    SPANS,
    ScoreFilter,
    names,
    predictors,
    recent_forecasts,
    scoreboard,
)
from monitor.models import DayScore, Forecast, ForecastPredictor, ForecastState, Metric, Series, Site, Suite
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report

NOW = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)
WEEK, MONTH, QUARTER, YEAR = SPANS
Score = Callable[..., DayScore]


@pytest.fixture
def reader(db: None) -> User:
    return User.objects.create_user("reader")


@pytest.fixture
def score(circle: Series) -> Score:
    """Store ten forecasts with errors of 1, baseline 2; eight inside the 80 % interval, nine inside 90 %."""

    def make(**changes: Any) -> DayScore:
        fields = {"day": date(2026, 3, 30), "suite": circle.suite, "site": None, "metric": "total.seconds"}
        counts = {"n": 10, "last_value_n": 10, "interval_n": 10}
        sums = {
            "absolute_error": 10.0,
            "last_value_error": 20.0,
            "compared_error": 10.0,
            "actual": 100.0,
        }
        inside = {"within_80": 8, "within_90": 9, "unit": "seconds", "method": METHOD}
        return DayScore.objects.create(**{**fields, **counts, **sums, **inside, **changes})

    return make


def test_scores_are_means_of_the_daily_sums(score: Score, reader: User) -> None:
    score()
    score(day=date(2026, 3, 29), n=30, absolute_error=70.0, within_80=4)
    whole = scoreboard(reader, ScoreFilter(), NOW).whole
    assert whole is not None
    assert (whole.n, whole.mean_absolute_error, whole.relative_error) == (40, 2.0, 0.4)
    assert (whole.scaled_error, whole.better_by) == (0.5, 0.5)
    assert (whole.interval_n, whole.coverage_80, whole.coverage_90) == (20, 0.6, 0.9)


def test_a_scoreboard_without_scores_is_empty(reader: User, circle: Series) -> None:
    board = scoreboard(reader, ScoreFilter(), NOW)
    assert board.whole is None
    assert (board.methods, board.times, board.newest_day) == ([], [], None)


def test_a_score_without_data_is_none(score: Score, reader: User) -> None:
    score(last_value_n=0, last_value_error=0.0, actual=0.0, interval_n=0)
    whole = scoreboard(reader, ScoreFilter(), NOW).whole
    assert whole is not None
    assert (whole.scaled_error, whole.better_by, whole.relative_error) == (None, None, None)
    assert (whole.coverage_80, whole.coverage_90) == (None, None)


def test_each_table_leaves_out_one_part_of_the_choice(score: Score, reader: User) -> None:
    here, there = Site.objects.order_by("name")
    for site in (None, here, there):
        score(site=site)
    score(site=here, n=5, metric="total_core.seconds")
    score(n=7, method="nws")
    board = scoreboard(reader, ScoreFilter(), NOW)
    assert [(method.name, method.n) for method in board.methods] == [(METHOD, 10), ("nws", 7)]
    assert [(metric.name, metric.n) for metric in board.metrics] == [("total.seconds", 10)]
    assert sorted((site.name, site.n) for site in board.sites) == [(here.name, 10), (there.name, 10)]
    board = scoreboard(reader, ScoreFilter(site=here.name), NOW)
    assert [(metric.name, metric.n) for metric in board.metrics] == [
        ("total.seconds", 10),
        ("total_core.seconds", 5),
    ]
    assert board.site_names == [here.name, there.name]
    assert names(reader, MONTH, NOW)["method"] == [METHOD, "nws"]


def test_a_short_range_goes_by_days_and_a_long_one_by_weeks(score: Score, reader: User) -> None:
    for ago in (0, 1, 8, 60):
        score(day=(NOW - timedelta(days=ago)).date())
    shown = scoreboard(reader, ScoreFilter(span=MONTH), NOW).times
    assert [score.start for score in shown] == [date(2026, 3, 23), date(2026, 3, 30), date(2026, 3, 31)]
    shown = scoreboard(reader, ScoreFilter(span=QUARTER), NOW).times
    assert [(score.start, score.n) for score in shown] == [
        (date(2026, 1, 26), 10),
        (date(2026, 3, 23), 10),
        (date(2026, 3, 30), 20),
    ]
    assert len(scoreboard(reader, ScoreFilter(span=WEEK), NOW).times) == 2


def test_scores_of_a_suite_are_visible_to_its_viewers(score: Score, reader: User) -> None:
    score()
    staff = Group.objects.create(name="staff")
    Suite.objects.get().viewers.add(staff)
    assert scoreboard(reader, ScoreFilter(), NOW).whole is None
    assert names(reader, YEAR, NOW) == {"metric": [], "method": []}
    reader.groups.add(staff)
    assert scoreboard(User.objects.get(pk=reader.pk), ScoreFilter(), NOW).whole is not None
    assert scoreboard(User.objects.create_superuser("root"), ScoreFilter(), NOW).whole is not None


def test_the_number_of_queries_does_not_depend_on_the_amount_of_data(
    score: Score, reader: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for ago in range(20):
        score(day=(NOW - timedelta(days=ago)).date())
    with django_assert_max_num_queries(8):
        scoreboard(reader, ScoreFilter(), NOW)


@pytest.fixture
def total(circle: Series) -> Metric:
    ingest(wire.to_json(circle_report(NOW)))
    return Metric.objects.get(name="total.seconds")


def issued(metric: Metric, minutes: int, truth: float | None, **changes: Any) -> Forecast:
    at = NOW + timedelta(minutes=minutes)
    fields = {"metric": metric, "method": METHOD, "level": 0.8, "n": 9, "issued_at": at, "last_time": at}
    figures = {
        "mean": 7.0,
        "median": 7.0,
        "lower": 6.0,
        "upper": 8.0,
        "quantiles": [7.0] * len(QUANTILE_LEVELS),
    }
    truths = {"truth": truth, "truth_time": at if truth is not None else None, "last_known_at": at}
    return Forecast.objects.create(**{**fields, **figures, **truths, **changes})


def test_the_newest_scored_forecasts_are_shown(total: Metric, reader: User) -> None:
    ForecastState.objects.update_or_create(metric=total, defaults={"record_n": 2, "last_time": NOW})
    before = issued(total, 0, 7.5)
    newest = issued(total, 1, 9.0)
    issued(total, 2, None)
    issued(total, 3, 8.0, method="nws")
    last, earlier = recent_forecasts(reader, ScoreFilter())
    assert (last, last.metric.series.name, last.metric.unit, last.off_by) == (
        newest,
        "circle",
        "seconds",
        2.0,
    )
    assert earlier == before
    assert recent_forecasts(reader, ScoreFilter(site="site-of-here")) == [last, earlier]
    assert recent_forecasts(reader, ScoreFilter(site="elsewhere")) == []
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    assert recent_forecasts(reader, ScoreFilter()) == []


def test_more_series_show_fewer_forecasts_each(circle: Series, total: Metric, reader: User) -> None:
    ForecastState.objects.update_or_create(metric=total, defaults={"record_n": 2, "last_time": NOW})
    for minutes in range(MOST_RECENT + 5):
        issued(total, minutes, 7.5)
    assert len(recent_forecasts(reader, ScoreFilter())) == MOST_RECENT
    Series.objects.create(name="other", probe="circle", suite=circle.suite, reporter=circle.reporter)
    ingest(wire.to_json(circle_report(NOW, series="other")))
    other = Metric.objects.get(name="total.seconds", segment__series__name="other")
    ForecastState.objects.update_or_create(metric=other, defaults={"record_n": 1, "last_time": NOW})
    issued(other, 0, 7.5)
    assert len(recent_forecasts(reader, ScoreFilter())) == MOST_RECENT // 2 + 1


def test_used_predictors_come_before_dropped_ones(total: Metric, reader: User) -> None:
    common = {"metric": total, "series": total.series, "n": 50, "p_value": 0.01}
    for name, gain, is_kept in (("a", -0.1, False), ("b", 0.2, True), ("c", 0.3, True), ("d", None, None)):
        ForecastPredictor.objects.create(name=name, gain=gain, is_kept=is_kept, **common)
    assert [predictor.name for predictor in predictors(reader, ScoreFilter())] == ["c", "b", "a"]
    assert predictors(reader, ScoreFilter(metric="total_core.seconds")) == []
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    assert predictors(reader, ScoreFilter()) == []
