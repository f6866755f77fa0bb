"""Choose predictors of the metrics of an application: metrics of probes that use the same resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet

from monitor.analysis.forecasts import states
from monitor.analysis.forecasts.statements import execute
from monitor.depot.series.kinds import probes_of_kind
from monitor.models import (
    Binding,
    CurrentSegment,
    ForecastPredictor,
    ForecastState,
    Metric,
    Series,
    Suite,
)

MOST_PREDICTORS = 8  # per metric
NEW_AT_ONCE = 1_000  # metrics

_INSERT = """
INSERT INTO monitor_forecastpredictor (metric_id, series_id, name, n)
SELECT %(metric)b, series.id, chosen.name, 0
FROM unnest(%(series)b::bigint[], %(names)b::text[]) WITH ORDINALITY AS chosen (series, name, place)
JOIN monitor_series AS series ON series.id = chosen.series
ORDER BY place FOR KEY SHARE OF series
"""


Value = TypeVar("Value")


class BoundResource(NamedTuple):
    role: str
    resource: int


@dataclass
class _Path:
    """The resources that a series uses, and the users who see the series.

    Attributes:
        leader: the series that this series follows.
        viewers: the user groups that see the series; empty: all users see it.
        bound: the resources, each with its role.
    """

    series: int
    leader: int | None
    viewers: set[int]
    bound: set[BoundResource]

    @cached_property
    def resources(self) -> set[int]:
        return {bound.resource for bound in self.bound}

    def may_name(self, other: _Path) -> bool:
        """Return whether answers about this series may name *other*: all its viewers see *other* too."""
        return not other.viewers or (bool(self.viewers) and self.viewers <= other.viewers)

    def nearness(self, other: _Path) -> tuple[bool, int, int]:
        """Return how near *other* is to this series, as a sort key; a greater key means nearer.

        The key is (whether both have the same leader, number of shared bindings, number of shared resources).
        A series without a leader counts as its own leader.
        """
        leaders = {self.leader or self.series, other.leader or other.series}
        shared = len(self.resources & other.resources)
        return len(leaders) == 1, len(self.bound & other.bound), shared


def choose_predictors(series: Collection[int] | None = None) -> int:
    """Choose predictors for the current segments of the applications among *series* (None: all).

    The predictors of a metric are the metrics of the same name that the nearest probes measure; all viewers
    of the application may see these probes. Return how many metrics have got different predictors. The states
    of these metrics are reset, because the forecasters also learn from the history of a new predictor.
    """
    applications = _paths("application", series)
    grid = _paths("grid", _sharing(applications))
    near = {key: _nearest(path, grid) for key, path in applications.items()}
    metrics = _current_metrics(applications)
    of_probes = Metric.objects.filter(
        segment__series__in={probe for nearest in near.values() for probe in nearest}
    )
    measured = _sets(of_probes.order_by().values_list("segment__series", "name"))
    before = ForecastPredictor.objects.filter(metric__in=metrics).order_by()
    rows = before.values_list("metric", "series", "name")
    previous = _sets((metric, (probe, name)) for metric, probe, name in rows)
    changed = 0
    for metric, (application, name) in metrics.items():
        probes_of_name = [probe for probe in near[application] if name in measured[probe]]
        chosen = [(probe, name) for probe in probes_of_name[:MOST_PREDICTORS]]
        if set(chosen) != previous[metric]:
            _replace(metric, chosen)
            changed += 1
    return changed


def choose_new() -> bool:
    """Choose predictors for the new states of metrics; return whether there may be more new states.

    If the metric is a probe's, predictors are chosen for the applications that share a resource with the
    probe.
    """
    new = ForecastState.objects.filter(is_new=True).order_by("pk")
    series = dict(new.values_list("pk", "metric__segment__series")[:NEW_AT_ONCE])
    if series:
        choose_predictors({*series.values(), *_sharing(series.values())})
        _set_new(ForecastState.objects.filter(pk__in=series), is_new=False)
    return len(series) == NEW_AT_ONCE


def choose_again(segments: Collection[int]) -> None:
    """Mark the metrics of *segments*, so that ``choose_new`` chooses their predictors.

    To be called when the series of *segments* have returned to these segments.
    """
    _set_new(ForecastState.objects.filter(metric__segment__in=segments), is_new=True)


@transaction.atomic
def _set_new(metrics: QuerySet[ForecastState], *, is_new: bool) -> None:
    changed = metrics.filter(is_new=not is_new).order_by("pk").select_for_update(of=("self",))
    keys = list(changed.values_list("pk", flat=True))
    ForecastState.objects.filter(pk__in=keys).update(is_new=is_new)


def _sharing(series: Iterable[int]) -> set[int]:
    """Return the series that share a resource with one of *series*, and *series* themselves."""
    used = Binding.objects.filter(series__in=list(series)).order_by().values("resource")
    return set(Binding.objects.filter(resource__in=used).order_by().values_list("series", flat=True))


def _paths(kind: str, series: Collection[int] | None) -> dict[int, _Path]:
    """Return, by series, the path of each of *series* (None: of all) whose measurements are of *kind*."""
    of_kind = Series.objects.filter(Q(kind=kind) | Q(kind="", probe__in=probes_of_kind(kind))).order_by(
        "name"
    )
    if series is not None:
        of_kind = of_kind.filter(pk__in=series)
    viewers = _sets(Suite.viewers.through.objects.values_list("suite", "group"))
    bindings = Binding.objects.filter(series__in=of_kind).order_by()
    rows = bindings.values_list("series", "role", "resource")
    bound = _sets((key, BoundResource(role, resource)) for key, role, resource in rows)
    return {
        key: _Path(key, leader, viewers[suite], bound[key])
        for key, leader, suite in of_kind.values_list("pk", "leader", "suite")
    }


def _nearest(path: _Path, grid: Mapping[int, _Path]) -> list[int]:
    """Return the series of *grid* that share a resource with *path*, the nearest series first.

    Series that some viewers of *path* must not see are left out.
    """
    sharing = [
        other
        for other in grid.values()
        if path.may_name(other) and not path.resources.isdisjoint(other.resources)
    ]
    return [other.series for other in sorted(sharing, key=path.nearness, reverse=True)]


def _current_metrics(series: Iterable[int]) -> dict[int, tuple[int, str]]:
    """Return the metrics of the current segments of *series* that have a state: (series, name) by key."""
    segments = CurrentSegment.objects.filter(series__in=list(series)).values("segment")
    followed = Metric.objects.filter(segment__in=segments, forecast_state__isnull=False).order_by("pk")
    rows = followed.values_list("pk", "segment__series", "name")
    return {key: (of_series, name) for key, of_series, name in rows}


def _sets(pairs: Iterable[tuple[int, Value]]) -> Mapping[int, set[Value]]:
    """Return the set of values that each key has in *pairs*; a key without values has the empty set."""
    sets: dict[int, set[Value]] = defaultdict(set)
    for key, value in pairs:
        sets[key].add(value)
    return sets


@transaction.atomic
def _replace(metric: int, chosen: Sequence[tuple[int, str]]) -> None:
    """Make *chosen*, pairs of (series, name), the only predictors of *metric*."""
    if states.lock(ForecastState, [metric]):
        ForecastPredictor.objects.filter(metric=metric).delete()
        series, names = zip(*chosen, strict=True) if chosen else ((), ())
        execute(_INSERT, {"metric": metric, "series": list(series), "names": list(names)})
        states.reset(ForecastState, [metric])
