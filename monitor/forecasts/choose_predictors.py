"""Which probes an application's metrics listen to: those that use what it uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q

import probes
from monitor.forecasts import predictors_sql
from monitor.forecasts.state_table import METRIC_STATES
from monitor.models import Binding, CurrentSegment, ForecastPredictor, Metric, Series, Suite

MOST = 8  # of a metric
NEW_AT_ONCE = 1_000  # metrics


class Place(NamedTuple):
    role: str
    resource: int


@dataclass
class _Path:
    """What a series uses, who leads it, and who sees it: groups, without any everybody."""

    series: int
    name: str
    leader: int | None
    viewers: frozenset[int]
    places: set[Place] = field(default_factory=set)

    @cached_property
    def resources(self) -> set[int]:
        return {place.resource for place in self.places}

    def may_name(self, other: _Path) -> bool:
        """Whether all who see this one see *other* as well: what is listened to is told with every answer."""
        return not other.viewers or (bool(self.viewers) and self.viewers <= other.viewers)

    def nearness(self, other: _Path) -> tuple[bool, int, int]:
        """Whether both are scheduled together, how many resources have the same role, how many are shared."""
        leaders = {self.leader or self.series, other.leader or other.series}
        shared = len(self.resources & other.resources)
        return len(leaders) == 1, len(self.places & other.places), shared


def choose_predictors(series: Collection[int] | None = None) -> int:
    """Let the metrics of what these series (None: all) are at, where they are applications, listen to the
    metrics of the same name of the probes that are nearest, and that all may see who see them; how many
    listen to others than before.

    Who does reads the depot anew: what was heard before counts as well.
    """
    wanted = _paths("application", series)
    near = _near(wanted)
    metrics = _metrics_now(wanted)
    measured = _measured({probe for those in near.values() for probe in those})
    had = _had(metrics)
    changed = 0
    for metric, (of, name) in metrics.items():
        chosen = [(probe, name) for probe in near[of] if name in measured[probe]][:MOST]
        if set(chosen) != had[metric]:
            _listen(metric, chosen)
            changed += 1
    return changed


def choose_new() -> bool:
    """Choose for what is followed only now: for applications themselves and, of what is measured by probes,
    for the applications that use any of the same resources. Whether there is more."""
    new = predictors_sql.new(NEW_AT_ONCE)
    if new:
        choose_predictors({*new.values(), *_sharing(new.values())})
        predictors_sql.set_chosen(new)
    return len(new) == NEW_AT_ONCE


def _near(applications: Mapping[int, _Path]) -> dict[int, list[int]]:
    """The probes that each of *applications* may listen to, the nearest first."""
    grid = _paths("grid", _sharing(applications))
    return {key: _nearest(path, grid) for key, path in applications.items()}


def _sharing(series: Iterable[int]) -> set[int]:
    """Those that use a resource that one of *series* uses."""
    used = Binding.objects.filter(series__in=list(series)).order_by().values("resource")
    return set(Binding.objects.filter(resource__in=used).order_by().values_list("series", flat=True))


def _paths(kind: str, series: Collection[int] | None) -> dict[int, _Path]:
    """Of those of *series* (None: all) that are of *kind*, or whose probe is."""
    found = Series.objects.filter(Q(kind=kind) | Q(kind="", probe__in=_of_kind(kind))).order_by("name")
    if series is not None:
        found = found.filter(pk__in=series)
    viewers = _viewers()
    paths = {
        key: _Path(key, name, leader, viewers[suite])
        for key, name, leader, suite in found.values_list("pk", "name", "leader", "suite")
    }
    bound = Binding.objects.filter(series__in=paths).order_by()
    for key, role, resource in bound.values_list("series", "role", "resource"):
        paths[key].places.add(Place(role, resource))
    return paths


def _viewers() -> Mapping[int, frozenset[int]]:
    """By suite."""
    found: dict[int, frozenset[int]] = defaultdict(frozenset)
    for suite, group in Suite.viewers.through.objects.values_list("suite", "group"):
        found[suite] |= {group}
    return found


def _of_kind(kind: str) -> list[str]:
    return [name for name in probes.names() if _kind(name) == kind]


def _kind(name: str) -> str:
    try:
        return probes.load(name).kind
    except Exception:  # noqa: BLE001  # its file is broken: its runs say so, each
        return ""


def _nearest(path: _Path, grid: Mapping[int, _Path]) -> list[int]:
    """Those of *grid* that share anything with *path* and may be named with it, the nearest first."""
    mine = path.resources
    sharing = [
        other for other in grid.values() if path.may_name(other) and not mine.isdisjoint(other.resources)
    ]
    return [other.series for other in sorted(sharing, key=path.nearness, reverse=True)]


def _metrics_now(series: Iterable[int]) -> dict[int, tuple[int, str]]:
    """The metrics, with series and name, that are followed of what *series* are at."""
    now = CurrentSegment.objects.filter(series__in=list(series)).values("segment")
    followed = Metric.objects.filter(segment__in=now, forecast_state__isnull=False).order_by("pk")
    return {key: (of, name) for key, of, name in followed.values_list("pk", "segment__series", "name")}


def _measured(series: Iterable[int]) -> Mapping[int, set[str]]:
    """What each of *series* ever measured, by name."""
    found: dict[int, set[str]] = defaultdict(set)
    metrics = Metric.objects.filter(segment__series__in=list(series)).order_by()
    for key, name in metrics.values_list("segment__series", "name"):
        found[key].add(name)
    return found


def _had(metrics: Iterable[int]) -> Mapping[int, set[tuple[int, str]]]:
    found: dict[int, set[tuple[int, str]]] = defaultdict(set)
    listening = ForecastPredictor.objects.filter(metric__in=list(metrics)).order_by()
    for metric, series, name in listening.values_list("metric", "series", "name"):
        found[metric].add((series, name))
    return found


@transaction.atomic
def _listen(metric: int, chosen: Sequence[tuple[int, str]]) -> None:
    if METRIC_STATES.lock([metric]):
        predictors_sql.replace(metric, chosen)
        METRIC_STATES.reset([metric])
