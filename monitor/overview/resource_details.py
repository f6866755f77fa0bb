"""The page of a resource: how it is reached, its state, series and failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from monitor.availability.site_states import CurrentState, resource_states
from monitor.failures.by_category import CategoryFailures, failed_at, failures_by_category
from monitor.models import Binding, Resource, Run, Series, Site
from monitor.overview.place_details import bound_series, durations_in
from monitor.overview.series_list import ListedSeries, lines_of
from monitor.performance.stage_durations_sql import StageDuration

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_SERIES = 100
LATEST_FAILURES = 20
ACCESS = ("shell", "transfer", "batch")


@dataclass(frozen=True)
class AccessMethod:
    """How the resource is used for one purpose, such as *shell*: the kind of access, and its options."""

    purpose: str
    kind: str
    options: Mapping[str, object]


@dataclass(frozen=True)
class BoundSeries:
    """A series, and the *roles* that the resource has in it."""

    line: ListedSeries
    roles: Sequence[str]


@dataclass(frozen=True)
class ResourceDetails:
    """The content of the page.

    Attributes:
        shows_hosts: whether the user manages the site: only then hosts, paths and options are shown.
        series: the first ``MOST_SERIES`` of all *series_count* series, by name.
        failures, stages: those of the time range.
        latest: the newest failed runs of the time range.
    """

    resource: Resource
    state: CurrentState
    shows_hosts: bool
    access: Sequence[AccessMethod]
    series: Sequence[BoundSeries]
    series_count: int
    failures: Sequence[CategoryFailures]
    latest: Sequence[Run]
    stages: Sequence[StageDuration]


def resource_details(
    user: AbstractBaseUser | AnonymousUser,
    resource: Resource,
    now: datetime,
    start: datetime | None,
    end: datetime,
) -> ResourceDetails:
    """Return the content of the page of *resource* for *user*, from *start* (None: all) to *end*."""
    series = bound_series(Series.objects.visible_to(user), [resource.name])
    is_own = Site.objects.manageable_by(user).filter(pk=resource.site_id).exists()
    keys = list(series.order_by("sort_name").values_list("pk", flat=True))
    failed = failed_at([resource.name], keys)
    within = failed.filter(slot__lte=end)
    within = within.filter(slot__gte=start) if start else within
    latest = within.select_related("series", "signature").order_by("-slot")[:LATEST_FAILURES]
    return ResourceDetails(
        resource=resource,
        state=resource_states(user, [resource.name], now)[resource.name],
        shows_hosts=is_own,
        access=access_methods(resource, with_options=is_own),
        series=_bound(resource, lines_of(keys[:MOST_SERIES], resource.site.name, now)),
        series_count=len(keys),
        failures=failures_by_category(failed, start, end),
        latest=list(latest),
        stages=durations_in(keys, start, end),
    )


def access_methods(resource: Resource, *, with_options: bool) -> list[AccessMethod]:
    """Return the access methods of *resource*: the kind, and the other options by name if wanted."""
    methods = []
    for purpose in ACCESS:
        options = dict(getattr(resource, purpose))
        kind = str(options.pop("kind", "none"))
        methods.append(AccessMethod(purpose, kind, options if with_options else {}))
    return methods


def _bound(resource: Resource, lines: Sequence[ListedSeries]) -> list[BoundSeries]:
    roles: dict[str, list[str]] = defaultdict(list)
    bindings = Binding.objects.filter(resource=resource, series__name__in=[line.name for line in lines])
    for name, role in bindings.order_by("role").values_list("series__name", "role"):
        roles[name].append(role)
    return [BoundSeries(line, roles[line.name]) for line in lines]
