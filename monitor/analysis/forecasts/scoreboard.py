"""Scores of forecasts by method, metric, site and time; accuracy by consumer; gain from predictors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Max, OuterRef, QuerySet, Sum
from django.db.models.functions import TruncWeek

from monitor.analysis.forecasts.daily_scores import SUMS
from monitor.analysis.forecasts.defaults import HEADLINE, METHOD
from monitor.analysis.forecasts.job_outcomes import OUTCOME_COLUMNS, Accuracy, accuracy_of
from monitor.models import (
    Binding,
    DayScore,
    Forecast,
    ForecastPredictor,
    ForecastState,
    Metric,
    Outcome,
    Series,
    Suite,
)
from monitor.models.natural_order import sort_name
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_ROWS = 50
MOST_OUTCOMES = 5000
MOST_RECENT = 60
NEWEST_ISSUED = 1000  # forecasts
LEAST_COMPARED = 20  # forecasts: methods with fewer come last


@dataclass(frozen=True)
class ScoreRange:
    """The *days* up to *last*, by default today; long ranges are shown by week."""

    key: str
    label: str
    days: int
    last: date | None = None

    @property
    def by_week(self) -> bool:
        return self.days > 31

    def start(self, now: datetime) -> date:
        return (self.last or now.astimezone(UTC).date()) - timedelta(days=self.days - 1)


SPANS = (
    ScoreRange("7d", "7 days", 7),
    ScoreRange("30d", "30 days", 30),
    ScoreRange("90d", "90 days", 90),
    ScoreRange("1y", "1 year", 365),
)


@dataclass(frozen=True)
class ScoreFilter:
    """The selection that the scoreboard shows; an empty *site* selects all sites."""

    site: str = ""
    metric: str = HEADLINE
    method: str = METHOD
    span: ScoreRange = SPANS[1]


@dataclass(frozen=True)
class Score:
    """The score of *n* forecasts; a figure without data is None.

    Attributes:
        mean_absolute_error: the error of the median.
        relative_error: the sum of the errors divided by the sum of the actual values; a mean of percentages
            would be that of the smallest values.
        scaled_error: the error divided by the error of the baseline; less than 1 is better than the baseline.
        interval_n: the number of forecasts with an interval.
        coverage_80, coverage_90: the shares of actual values inside the 80 % and the 90 % intervals.
        start: the first day of the period that the score covers.
    """

    name: str
    unit: str
    n: int
    mean_absolute_error: float | None
    relative_error: float | None
    scaled_error: float | None
    interval_n: int
    coverage_80: float | None
    coverage_90: float | None
    start: date | None = None

    @property
    def better_by(self) -> float | None:
        """Return by what share the error is less than the baseline's; negative if the error is larger."""
        return None if self.scaled_error is None else 1.0 - self.scaled_error


@dataclass(frozen=True)
class Scoreboard:
    """The score of a selection as a *whole*, and tables that each vary one part of the selection.

    *sites* lists the scores of the sites with the most forecasts; *site_names* names all sites.
    """

    whole: Score | None
    methods: Sequence[Score]
    metrics: Sequence[Score]
    sites: Sequence[Score]
    site_names: Sequence[str]
    times: Sequence[Score]
    newest_day: date | None


def scoreboard(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter, now: datetime) -> Scoreboard:
    """Return the scoreboard of what *user* may see, restricted to *choice*.

    The number of queries, and what they read, do not depend on the number of forecasts or series.
    """
    visible = _visible(user, choice.span, now)
    here = visible.filter(site__name=choice.site) if choice.site else visible.filter(site=None)
    of_metric = here.filter(metric=choice.metric)
    ours = of_metric.filter(method=choice.method)
    everywhere = visible.filter(metric=choice.metric, method=choice.method).exclude(site=None)
    times = _by(ours, "week" if choice.span.by_week else "day")
    whole, sites = _by(ours, "metric"), _by(everywhere, "site__name")
    return Scoreboard(
        whole=whole[0] if whole else None,
        methods=sorted(_by(of_metric, "method"), key=_off_by),
        metrics=_by(here.filter(method=choice.method), "metric"),
        sites=sites[:MOST_ROWS],
        site_names=sorted((site.name for site in sites), key=sort_name),
        times=sorted(times, key=lambda score: score.start or date.min),
        newest_day=ours.aggregate(newest=Max("day"))["newest"],
    )


def recent_forecasts(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[Forecast]:
    """Return the newest scored forecasts of *choice*, from the series with the newest values.

    The forecast with the newest actual value is first. The more series there are, the fewer forecasts of each
    series are returned. A new value makes a new forecast: the series with the newest values are looked for
    among the newest ``NEWEST_ISSUED`` forecasts, and among all only if these have too few.
    """
    states = ForecastState.objects.filter(metric__name=choice.metric, record_n__gt=0)
    if choice.site:
        states = states.filter(metric__segment__series__in=_at_site(choice.site))
    if not sees_all(user):
        states = states.filter(metric__segment__series__in=Series.objects.visible_to(user))
    newest_first = states.order_by(F("last_time").desc(nulls_last=True)).values_list("metric", flat=True)
    metrics: list[int] = []
    if not choice.site:  # series of a site are few
        issued = Forecast.objects.order_by("-pk").values_list("metric", flat=True)[:NEWEST_ISSUED]
        metrics = list(newest_first.filter(metric__in=set(issued))[:MOST_RECENT])
    if len(metrics) < MOST_RECENT:
        metrics = list(newest_first[:MOST_RECENT])
    each = MOST_RECENT // max(len(metrics), 1)
    scored = Forecast.objects.scored().filter(metric=OuterRef("pk"), method=choice.method, at=None)
    newest = ArraySubquery(scored.order_by("-last_known_at").values("pk")[:each])
    keys = Metric.objects.filter(pk__in=metrics).values_list(newest, flat=True)
    found = Forecast.objects.filter(pk__in=list(chain.from_iterable(keys)))
    return list(found.select_related("metric__segment__series").order_by("-truth_time", "-pk"))


def predictors(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[ForecastPredictor]:
    """Return the predictors of the chosen metric with their gains.

    The most helpful predictors come first, predictors that were dropped come last.
    """
    found = ForecastPredictor.objects.filter(metric__name=choice.metric, is_kept__isnull=False)
    if choice.site:
        found = found.filter(metric__segment__series__in=_at_site(choice.site))
    if not sees_all(user):
        visible = Series.objects.visible_to(user)
        found = found.filter(series__in=visible, metric__segment__series__in=visible)
    in_order = found.order_by("-is_kept", F("gain").desc(nulls_last=True), "pk")
    return list(in_order.select_related("series", "metric__segment__series")[:MOST_ROWS])


def consumers(user: AbstractBaseUser | AnonymousUser) -> dict[str, Accuracy]:
    """Return the accuracy of the forecasts for each consumer, from the newest outcomes visible to *user*.

    The consumer that reported last comes first. Without the permission to view outcomes, *user* sees only
    outcomes that *user* reported.
    """
    outcomes = Outcome.objects.visible_to(user)
    if not (isinstance(user, PermissionsMixin) and user.has_perm("monitor.view_outcome")):
        outcomes = outcomes.filter(consumer=user.pk)
    newest = outcomes.order_by("-received_at", "-pk")
    by_name: dict[str, list[Any]] = {}
    for row in newest.values_list("consumer__username", *OUTCOME_COLUMNS, named=True)[:MOST_OUTCOMES]:
        by_name.setdefault(row.consumer__username, []).append(row)
    return {name: accuracy_of(rows) for name, rows in list(by_name.items())[:MOST_ROWS]}


def names(
    user: AbstractBaseUser | AnonymousUser, span: ScoreRange, now: datetime
) -> Mapping[str, Sequence[str]]:
    """Return the names of each ``metric`` and ``method`` with scores, from which a user chooses."""
    found = _visible(user, span, now).filter(site=None).order_by()
    return {name: sorted(found.values_list(name, flat=True).distinct()) for name in ("metric", "method")}


def _visible(user: AbstractBaseUser | AnonymousUser, span: ScoreRange, now: datetime) -> QuerySet[DayScore]:
    """Return the scores that *user* may see.

    The keys of the suites are read first: PostgreSQL plans a list of keys better than a subquery.
    """
    recent = DayScore.objects.filter(day__gte=span.start(now))
    if span.last is not None:
        recent = recent.filter(day__lte=span.last)
    if sees_all(user):
        return recent
    return recent.filter(suite__in=list(Suite.objects.visible_to(user).values_list("pk", flat=True)))


def _by(found: QuerySet[DayScore], key: str) -> list[Score]:
    """Return a score for each value of the column *key* in *found*, most forecasts first."""
    if key == "week":
        found = found.annotate(week=TruncWeek("day"))
    sums = {f"sum_{name}": Sum(name) for name in SUMS}
    scores = [_score(row[key], row) for row in found.order_by().values(key, "unit").annotate(**sums)]
    return sorted(scores, key=lambda score: (-score.n, sort_name(score.name)))


def _off_by(score: Score) -> tuple[bool, float, float]:
    """Return the sort key of a method: few forecasts come last, then the smaller scaled error comes first.

    The absolute errors are not comparable, because the methods forecast different values.
    """
    scaled, error = score.scaled_error, score.mean_absolute_error
    is_of_few = score.n < LEAST_COMPARED
    return is_of_few, math.inf if scaled is None else scaled, math.inf if error is None else error


def _score(key: object, row: Mapping[str, Any]) -> Score:
    def share(part: str, whole: str) -> float | None:
        return row[f"sum_{part}"] / row[f"sum_{whole}"] if row[f"sum_{whole}"] else None

    return Score(
        name=str(key),
        unit=row["unit"],
        n=row["sum_n"],
        mean_absolute_error=share("absolute_error", "n"),
        relative_error=share("absolute_error", "actual"),
        scaled_error=share("compared_error", "last_value_error"),
        interval_n=row["sum_interval_n"],
        coverage_80=share("within_80", "interval_n"),
        coverage_90=share("within_90", "interval_n"),
        start=key if isinstance(key, date) else None,
    )


def _at_site(site: str) -> QuerySet[Binding, int]:
    bound = Binding.objects.filter(resource__site__name=site).order_by()
    return bound.values_list("series", flat=True)
