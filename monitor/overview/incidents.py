"""Incidents on the overview: the open ones, and what began or ended since yesterday and last week.

The number of queries does not depend on the number of incidents or series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.failures.explained_series import explaining_incidents
from monitor.models import Alert, Incident, IncidentSeries, Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

DAY, WEEK = timedelta(days=1), timedelta(days=7)
MOST_OPEN, MOST_FIXED = 5, 3  # that are listed
_MOST_READ = 1000


@dataclass(frozen=True)
class OpenIncident:
    """An open incident.

    Attributes:
        place: where it is; empty if that is not known.
        series_count: the number of series visible to the reader that it affects now.
        is_new: whether it was opened within the last day.
        handling: how users handle it, such as ``acknowledged by ada``; empty if they have not begun.
    """

    key: int
    title: str
    place: str
    since: datetime
    series_count: int
    is_new: bool
    handling: str


@dataclass(frozen=True)
class FixedIncident:
    """An incident that was resolved within the last day."""

    key: int
    title: str
    place: str
    resolved_at: datetime


@dataclass(frozen=True)
class IncidentChanges:
    """The numbers of incidents opened, resolved and unchanged in a period: *still_open* is older than it."""

    period: str
    new: int
    fixed: int
    still_open: int


@dataclass(frozen=True)
class CurrentIncidents:
    """The incidents of the overview.

    Attributes:
        open: those that affect most series, at most ``MOST_OPEN``.
        open_count: the number of all open ones.
        fixed: the last ones that were resolved within a day, at most ``MOST_FIXED``.
        changes: the changes since yesterday, and since last week.
        affected: the primary keys of the series that an open incident of runs affects or explains.
    """

    open: Sequence[OpenIncident]
    open_count: int
    fixed: Sequence[FixedIncident]
    changes: Sequence[IncidentChanges]
    affected: frozenset[int]

    @property
    def open_not_listed(self) -> int:
        return self.open_count - len(self.open)


def current_incidents(
    user: AbstractBaseUser | AnonymousUser, now: datetime, failing: Collection[int] = ()
) -> CurrentIncidents:
    """Return the incidents that *user* may see, with the series of each that *user* may see.

    *failing* has the primary keys of visible series that fail now. The ones that an incident explains count
    to its series, though it does not affect them yet.
    """
    recent = Q(resolved_at=None) | Q(resolved_at__gt=now - WEEK)
    newest_first = (
        Incident.objects.visible_to(user).filter(recent).order_by("-resolved_at", "-opened_at", "-pk")
    )
    # Most incidents are only counted.
    rows = list(newest_first.values_list("pk", "opened_at", "resolved_at")[:_MOST_READ])
    is_open = list(Incident.objects.filter(pk__in=[key for key, _, ended in rows if ended is None]))
    affected, series_of = _affected(user, is_open)
    explained = explaining_incidents(set(failing) - affected, is_open, now)
    for series, incident in explained.items():
        series_of[incident].add(series)
    is_open.sort(key=lambda each: (-len(series_of[each.pk]), -each.since.timestamp(), each.pk))
    fixed = _last_fixed(rows, now)
    listed = [each.pk for each in is_open[:MOST_OPEN]]
    titled = Incident.objects.select_related("signature").in_bulk([*listed, *fixed])
    spans = [(opened, ended) for _, opened, ended in rows]
    return CurrentIncidents(
        open=[_line(titled[key], len(series_of[key]), now) for key in listed if key in titled],
        open_count=len(is_open),
        fixed=[_fixed(titled[key]) for key in fixed if key in titled],
        changes=[
            changes_since("yesterday", now - DAY, spans),
            changes_since("last week", now - WEEK, spans),
        ],
        affected=affected | explained.keys(),
    )


def changes_since(
    period: str, start: datetime, spans: Iterable[tuple[datetime, datetime | None]]
) -> IncidentChanges:
    """Count the incidents with the *spans* (opened, resolved) by what happened since *start*.

    One that was opened and resolved since *start* is fixed, not new.
    """
    new = fixed = still_open = 0
    for opened_at, resolved_at in spans:
        if resolved_at is not None:
            fixed += resolved_at > start
        elif opened_at > start:
            new += 1
        else:
            still_open += 1
    return IncidentChanges(period, new, fixed, still_open)


def _affected(
    user: AbstractBaseUser | AnonymousUser, incidents: Sequence[Incident]
) -> tuple[frozenset[int], dict[int, set[int]]]:
    """Return the series with failed runs in *incidents*, and all affected series of each incident."""
    visible = Series.objects.visible_to(user).order_by().values("pk")
    keys = [incident.pk for incident in incidents]
    of_runs = IncidentSeries.objects.filter(incident__in=keys, until=None, series__in=visible)
    of_alerts = Alert.objects.open().filter(incident__in=keys, series__in=visible)
    series_of: dict[int, set[int]] = defaultdict(set)
    failing = list(of_runs.order_by().values_list("incident", "series"))
    for incident, series in [*failing, *of_alerts.order_by().values_list("incident", "series")]:
        series_of[incident].add(series)
    return frozenset(series for _, series in failing), series_of


def _line(incident: Incident, series_count: int, now: datetime) -> OpenIncident:
    return OpenIncident(
        key=incident.pk,
        title=incident.title,
        place=incident.place,
        since=incident.since,
        series_count=series_count,
        is_new=incident.opened_at > now - DAY,
        handling=_handling(incident),
    )


def _handling(incident: Incident) -> str:
    if incident.assigned_to:
        return f"assigned to {incident.assigned_to}"
    return f"acknowledged by {incident.acknowledged_by}" if incident.acknowledged_at else ""


def _last_fixed(rows: Iterable[tuple[int, datetime, datetime | None]], now: datetime) -> list[int]:
    """Return the primary keys of the incidents (key, opened, resolved) resolved last, within the last day."""
    fixed = [(ended, key) for key, _, ended in rows if ended is not None and ended > now - DAY]
    fixed.sort(key=lambda each: each[0], reverse=True)
    return [key for _, key in fixed[:MOST_FIXED]]


def _fixed(incident: Incident) -> FixedIncident:
    if incident.resolved_at is None:
        raise ValueError(f"incident {incident.pk}: expected a resolved one")
    return FixedIncident(incident.pk, incident.title, incident.place, incident.resolved_at)
