"""Incidents on the overview: the open ones, and what began or ended since yesterday and last week.

The number of queries does not depend on the number of incidents or series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from monitor.analysis.attribution.explained_series import IncidentPart, explaining_incidents
from monitor.core.db.timestamps import micros
from monitor.models import Incident
from monitor.models.suite import VISIBLE, visibility
from monitor.models.visibility import sees_all
from monitor.web.status import column_arrays
from monitor.web.status.column_arrays import NEVER

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

DAY, WEEK = timedelta(days=1), timedelta(days=7)
MOST_OPEN, MOST_FIXED = 5, 3  # that are listed
_MOST_READ = 1000  # open incidents whose series are read, the newest
_COLUMNS = {
    "pk": ("integer", "id"),
    "opened_at": ("time", "opened_at"),
    "resolved_at": ("time", "coalesce(resolved_at, '-infinity')"),
    "since": ("time", "since"),
    "kind": ("name", "kind"),
    "name": ("text", "name"),
    "condition": ("name", "condition"),
    "signature": ("integer", "coalesce(signature_id, 0)"),
}
_AFFECTED_COLUMNS = {
    "incident": ("integer", "incident_id"),
    "series": ("integer", "series_id"),
    "is_of_run": ("integer", "is_of_run::int"),
}
_AFFECTED = """
FROM (
    SELECT incident_id, series_id, true AS is_of_run FROM monitor_incidentseries
    WHERE until IS NULL AND incident_id = ANY (%b::bigint[])
    UNION ALL
    SELECT incident_id, series_id, false FROM monitor_alert
    WHERE closed_at IS NULL AND series_id IS NOT NULL AND incident_id = ANY (%b::bigint[])
) AS affected
"""
# Suites are few: their visibility is decided first.
_VISIBLE = f"""
FROM monitor_series WHERE id = ANY (%(series)b::bigint[]) AND suite_id = ANY (ARRAY(
    SELECT suite_id FROM (SELECT id AS suite_id FROM monitor_suite) AS series WHERE {VISIBLE}
))
"""  # noqa: S608  # a constant


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


NO_INCIDENTS = CurrentIncidents([], 0, [], [], frozenset())


class IncidentsOf(Protocol):
    """``current_incidents``, or a function that returns something else if it fails."""

    def __call__(
        self, user: AbstractBaseUser | AnonymousUser, now: datetime, failing: Collection[int] = (), /
    ) -> CurrentIncidents: ...


class _Affected(NamedTuple):
    """Pairs of an incident and a series that it affects, by a failed run or by an alert."""

    incident: NDArray[np.int64]
    series: NDArray[np.int64]
    is_of_run: NDArray[np.bool_]

    def with_explained(self, explained: Mapping[int, int]) -> _Affected:
        """Return these pairs, and those of *explained*: incidents by series."""
        incidents = np.array([*explained.values()], dtype=np.int64)
        series = np.array([*explained], dtype=np.int64)
        return _Affected(
            np.append(self.incident, incidents),
            np.append(self.series, series),
            np.append(self.is_of_run, np.zeros(len(explained), dtype=bool)),
        )

    def series_counts(self) -> Counter[int]:
        """Return the number of series of each incident."""
        span = int(self.series.max(initial=0)) + 1
        pairs = np.unique(self.incident * span + self.series)  # a tenth of the time of rows
        incidents, counts = np.unique(pairs // span, return_counts=True)
        return Counter(dict(zip(incidents.tolist(), counts.tolist(), strict=True)))


class _Incidents(NamedTuple):
    """Incidents as arrays, the newest first.

    Times are microseconds since 1970, UTC. Of an open one *resolved_at* is ``NEVER``, and of one without a
    signature *signature* is 0.
    """

    pk: NDArray[np.int64]
    opened_at: NDArray[np.int64]
    resolved_at: NDArray[np.int64]
    since: NDArray[np.int64]
    kind: NDArray[np.object_]
    name: NDArray[np.object_]
    condition: NDArray[np.object_]
    signature: NDArray[np.int64]

    @property
    def is_open(self) -> NDArray[np.bool_]:
        return np.equal(self.resolved_at, NEVER)

    def at(self, rows: NDArray[Any]) -> _Incidents:
        """Return the incidents at these positions, or where the mask is true."""
        return _Incidents(*(column[rows] for column in self))

    def parts(self) -> list[IncidentPart]:
        columns = (self.pk, self.kind, self.name, self.condition, self.signature)
        return [IncidentPart(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def last_fixed(self, start: int) -> list[int]:
        """Return the primary keys of the last ``MOST_FIXED`` that were resolved after *start*."""
        fixed = self.at(self.resolved_at > start)
        order = np.lexsort([-fixed.pk, -fixed.opened_at, -fixed.resolved_at])
        keys: list[int] = fixed.pk[order[:MOST_FIXED]].tolist()
        return keys

    def changes(self, period: str, start: int) -> IncidentChanges:
        """Count the changes from *start* until now. One opened and resolved since is fixed, not new."""
        is_older = self.opened_at <= start
        return IncidentChanges(
            period,
            new=int((self.is_open & ~is_older).sum()),
            fixed=int((self.resolved_at > start).sum()),
            still_open=int((self.is_open & is_older).sum()),
        )


def current_incidents(
    user: AbstractBaseUser | AnonymousUser, now: datetime, failing: Collection[int] = ()
) -> CurrentIncidents:
    """Return the incidents that *user* may see, with the series of each that *user* may see.

    *failing* has the primary keys of visible series that fail now. The ones that an incident explains count
    to its series, though it does not affect them yet.
    """
    recent = _open_or_resolved_since(user, now - WEEK)
    read = recent.at(np.flatnonzero(recent.is_open)[:_MOST_READ])
    affected = _affected(user, read.pk)
    of_runs = frozenset(affected.series[affected.is_of_run].tolist())
    explained = explaining_incidents(set(failing) - of_runs, read.parts(), now)
    series_of = affected.with_explained(explained).series_counts()
    series_counts = np.array([series_of[key] for key in read.pk.tolist()], dtype=np.int64)
    order = np.lexsort([read.pk, -read.since, -series_counts])
    listed, fixed = read.pk[order[:MOST_OPEN]].tolist(), recent.last_fixed(micros(now - DAY))
    titled = Incident.objects.select_related("signature").in_bulk([*listed, *fixed])
    return CurrentIncidents(
        open=[_line(titled[key], series_of[key], now) for key in listed if key in titled],
        open_count=int(recent.is_open.sum()),
        fixed=[_fixed(titled[key]) for key in fixed if key in titled],
        changes=[
            recent.changes("yesterday", micros(now - DAY)),
            recent.changes("last week", micros(now - WEEK)),
        ],
        affected=of_runs | explained.keys(),
    )


def _open_or_resolved_since(user: AbstractBaseUser | AnonymousUser, start: datetime) -> _Incidents:
    """Return the incidents that *user* may see and that are open or were resolved after *start*."""
    incidents = Incident.objects.visible_to(user).filter(Q(resolved_at=None) | Q(resolved_at__gt=start))
    rows = _Incidents(**column_arrays.read_rows(_COLUMNS, incidents))
    return rows.at(np.lexsort([-rows.pk, -rows.opened_at]))


def _affected(user: AbstractBaseUser | AnonymousUser, incidents: NDArray[np.int64]) -> _Affected:
    """Return the series that *user* may see and that *incidents* (primary keys) affect."""
    if not len(incidents):
        return _Affected(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool))
    rows = column_arrays.read(_AFFECTED_COLUMNS, _AFFECTED, [incidents, incidents])
    affected = _Affected(rows["incident"], rows["series"], rows["is_of_run"].astype(bool))
    if sees_all(user):
        return affected
    keys = np.unique(affected.series)  # a search by sorted keys takes half as long as a join
    parameters = {"series": keys, **visibility(user)}
    visible = column_arrays.read({"series": ("integer", "id")}, _VISIBLE, parameters)["series"]
    shown = np.isin(affected.series, visible)
    return _Affected(affected.incident[shown], affected.series[shown], affected.is_of_run[shown])


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


def _fixed(incident: Incident) -> FixedIncident:
    if incident.resolved_at is None:
        raise ValueError(f"incident {incident.pk}: expected a resolved one")
    return FixedIncident(incident.pk, incident.title, incident.place, incident.resolved_at)
