"""What a page shows beside the order of a ranking: paths to choose from, intervals, and predicted stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db.models import Q

import probes
from monitor.analysis.forecasts.defaults import HEADLINE
from monitor.analysis.forecasts.metric_state import STAGE
from monitor.depot.series.kinds import probes_of_kind
from monitor.models import Binding, CurrentSegment, Forecast, ForecastState, Resource, Series
from monitor.models.natural_order import sort_name
from monitor.models.series import Measures

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_READ = 2000  # series, to find the names of applications
_SECONDS = ".seconds"  # ends the name of the metric of a stage's duration


@dataclass(frozen=True)
class PredictedSeconds:
    """A predicted duration with its 80 % interval, in seconds."""

    median: float
    lower: float
    upper: float


@dataclass
class PredictedPath:
    """The prediction for one path: its *total*, and its stages by name."""

    total: PredictedSeconds | None = None
    stages: dict[str, PredictedSeconds] = field(default_factory=dict)


def applications(user: AbstractBaseUser | AnonymousUser) -> list[str]:
    """Return the names of the probes of the enabled series that *user* may see, applications first.

    With more than ``MOST_READ`` series, these are all installed ones: no index has the distinct names.
    """
    series = Series.objects.visible_to(user).filter(enabled=True).order_by("pk")
    names = list(series.values_list("probe", flat=True)[:MOST_READ])
    installed = probes.names() if len(names) == MOST_READ else ()
    of_grid = probes_of_kind(Measures.GRID)
    return sorted({*names, *installed}, key=lambda name: (name in of_grid, name))


def rankable_series(
    user: AbstractBaseUser | AnonymousUser, application: str, text: str, at_most: int
) -> Sequence[str]:
    """Return the first *at_most* enabled series of *application* that *user* may see, by name.

    *text* begins the name of the series, or is part of the name of a resource or site that it uses.
    """
    series = Series.objects.visible_to(user).filter(probe=application, enabled=True).order_by("sort_name")
    if not text:
        return list(series.values_list("name", flat=True)[:at_most])
    resources = Resource.objects.filter(Q(name__icontains=text) | Q(site__name__icontains=text))
    bound = Binding.objects.filter(resource__in=list(resources.values_list("pk", flat=True)))
    found = (series.filter(name__startswith=text), series.filter(pk__in=bound.order_by().values("series")))
    names = {name for each in found for name in each.values_list("name", flat=True)[:at_most]}
    return sorted(names, key=sort_name)[:at_most]


def elsewhere_paths(forecasts: Mapping[int, int]) -> dict[int, PredictedPath]:
    """Return the predictions by forecasts from elsewhere: *forecasts* has their keys by series (keys)."""
    rows = Forecast.objects.filter(pk__in=forecasts.values()).values_list("pk", "median", "lower", "upper")
    totals = {key: PredictedSeconds(*seconds) for key, *seconds in rows}
    return {series: PredictedPath(totals[key]) for series, key in forecasts.items() if key in totals}


def predicted_paths(series: Collection[int]) -> dict[int, PredictedPath]:
    """Return the current predictions for the next run of each of *series* (primary keys)."""
    segments = CurrentSegment.objects.filter(series__in=series).order_by().values("segment")
    states = ForecastState.objects.filter(metric__segment__in=segments).exclude(forecast=None)
    durations = Q(metric__name=HEADLINE) | Q(metric__name__startswith=STAGE, metric__name__endswith=_SECONDS)
    rows = states.filter(durations).values_list(
        "metric__segment__series", "metric__name", "forecast__median", "forecast__lower", "forecast__upper"
    )
    paths: dict[int, PredictedPath] = {}
    for key, name, *seconds in rows:
        path = paths.setdefault(key, PredictedPath())
        if name == HEADLINE:
            path.total = PredictedSeconds(*seconds)
        else:
            path.stages[name.removeprefix(STAGE).removesuffix(_SECONDS)] = PredictedSeconds(*seconds)
    return paths
