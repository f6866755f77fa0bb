"""The page of a resource: how it is reached, its state, series and failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from monitor.analysis.availability.site_states import CurrentState, resource_states
from monitor.analysis.outcomes.by_category import CategoryFailures, failed_at, failures_by_category
from monitor.analysis.performance.stage_durations_sql import StageDuration
from monitor.models import Binding, Resource, Run, Series, Site
from monitor.web.places.place_details import bound_series, durations_in
from monitor.web.search.series_list import ListedSeries, lines_of

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.run import RunQuerySet

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


class ShownResource:
    """The content of the page; each figure is computed when it is first asked for.

    *failures*, *stages* and *latest*, the newest failed runs, are from *start* (None: all) to *end*.
    """

    def __init__(
        self,
        user: AbstractBaseUser | AnonymousUser,
        resource: Resource,
        now: datetime,
        start: datetime | None,
        end: datetime,
    ) -> None:
        self._user, self._resource, self._now, self._start, self._end = user, resource, now, start, end

    @cached_property
    def state(self) -> CurrentState:
        name = self._resource.name
        return resource_states(self._user, [name], self._now)[name]

    @cached_property
    def shows_hosts(self) -> bool:
        """Whether the user manages the site: only then hosts, paths and options are shown."""
        return Site.objects.manageable_by(self._user).filter(pk=self._resource.site_id).exists()

    @property
    def access(self) -> list[AccessMethod]:
        return access_methods(self._resource, with_options=self.shows_hosts)

    @cached_property
    def series(self) -> list[BoundSeries]:
        """The first ``MOST_SERIES`` series, by name."""
        return _bound(self._resource, lines_of(self._keys[:MOST_SERIES], self._resource.site.name, self._now))

    @property
    def series_count(self) -> int:
        return len(self._keys)

    @cached_property
    def failures(self) -> Sequence[CategoryFailures]:
        return failures_by_category(self._failed, self._start, self._end)

    @cached_property
    def latest(self) -> list[Run]:
        within = self._failed.filter(slot__lte=self._end)
        within = within.filter(slot__gte=self._start) if self._start else within
        return list(within.select_related("series", "signature").order_by("-slot")[:LATEST_FAILURES])

    @cached_property
    def stages(self) -> Sequence[StageDuration]:
        return durations_in(self._keys, self._start, self._end)

    @cached_property
    def _keys(self) -> list[int]:
        series = bound_series(Series.objects.visible_to(self._user), [self._resource.name])
        return list(series.order_by("sort_name").values_list("pk", flat=True))

    @property
    def _failed(self) -> RunQuerySet:
        return failed_at([self._resource.name], self._keys)


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
