"""Count the latest states of series when they change, and read the counts as they are now.

A reader takes the counts as stored, without the series whose counted states are not those of now: results
that are not gathered yet, results that have become stale, changed configurations. Of these few it reads the
states. So a count is never older than the state itself would be.

Only callers with ``AdvisoryLock.DIRTY_HOURS`` count, so that each change is counted once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from django.db import transaction
from django.utils import timezone

from monitor.core.db import binary
from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.series.staleness import UNSCHEDULED, allowed_age_seconds
from monitor.models import Suite
from monitor.models.latest_run import TREND_RUNS
from monitor.web.status import column_arrays, latest, latest_sql, standings_sql
from monitor.web.status.series_states import LAST_HOUR, SeriesStates

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from numpy.typing import NDArray

    from monitor.models.run import State

MOST_AT_ONCE = 20_000  # series in a transaction
_COUNTS = {
    "group": ("integer", "suite_id"),
    "site": ("integer", "site_id"),
    "standing": ("integer", "standing"),
    "n": ("integer", "n"),
}
_STATES = {
    "series": ("integer", "counted.series_id"),
    "state": ("letter", "state"),
    "ended_at": ("time", "coalesce(ended_at, '-infinity')"),
    "culprit": ("integer", "culprit"),
}


@dataclass(frozen=True)
class GroupedBy:
    """How series are put into columns: by suite, or by probe if *probes* are given.

    Attributes:
        suites: the primary keys of the suites whose series count.
        probes: the probes with a column; one more column is for others.
        without: the primary keys of the series that do not count.
    """

    suites: Sequence[int]
    probes: Sequence[str] = ()
    without: Sequence[int] = ()

    def expression(self) -> tuple[str, str]:
        """Return the kind and the SQL of a number that ``column`` takes."""
        if not self.probes:
            return "integer", "suite_id"
        array = ", ".join(f"'{name}'" for name in self.probes)  # names of modules
        return "integer", f"coalesce(array_position(ARRAY[{array}], probe::text) - 1, {len(self.probes)})"

    def column(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the column of each of *numbers*."""
        return numbers if self.probes else latest.positions_of(numbers, np.array(self.suites, dtype=np.int64))


@dataclass(frozen=True)
class StandingCounts:
    """Numbers *n* of series by *group* (index of the column), *site* (key; 0: each once), *standing*."""

    group: NDArray[np.int64]
    site: NDArray[np.int64]
    standing: NDArray[np.int64]
    n: NDArray[np.int64]


def recount_changed(changed: Collection[tuple[int, datetime]]) -> None:
    """Count the series in *changed* again: pairs of (series, changed hour), whose latest runs are stored."""
    recount({series for series, _ in changed}, timezone.now())


def recount_due(now: datetime) -> None:
    """Count the series again whose configuration changed or whose results became stale."""
    parameters = {"now": now, "most": MOST_AT_ONCE}
    with transaction.atomic(), binary.cursor() as cursor:
        lock_until_commit(AdvisoryLock.DIRTY_HOURS)
        due = [key for (key,) in cursor.execute(standings_sql.DUE.encode(), parameters).fetchall()]
        if due:
            recount(due, now)
            cursor.execute(standings_sql.PRUNE.encode(), {"now": now})


def recount(keys: Collection[int], now: datetime) -> None:
    """Count the series with these primary *keys* by what is stored of them now; they may be deleted."""
    with binary.cursor() as cursor:
        rows = cursor.execute(standings_sql.CONFIGURED.encode(), [list(keys)], binary=True).fetchall()
    given = [(*row[:4], _allowed_age(*row[4:8], is_enabled=row[8])) for row in rows]
    columns = [list(column) for column in zip(*given, strict=True)] or [[]] * 5
    names = ("id", "suite", "reporter", "probe", "allowed")
    with binary.cursor() as cursor:
        cursor.execute(
            standings_sql.RECOUNT.encode(),
            {**dict(zip(names, columns, strict=True)), "all": list(keys), "now": now},
        )


def visible_groups(user: AbstractBaseUser | AnonymousUser, now: datetime) -> GroupedBy | None:
    """Return the suites that *user* may see, without the series whose counted states are not those of *now*.

    None if these are so many that it is cheaper to read all series.
    """
    outdated = outdated_series(now)
    if len(outdated) > latest.MOST_LISTED:
        return None
    return GroupedBy(list(Suite.objects.visible_to(user).values_list("pk", flat=True)), without=outdated)


def _allowed_age(
    schedule: str, zone: str, limit_seconds: float, later_seconds: int, *, is_enabled: bool
) -> float:
    """Return ``staleness.allowed_age`` of a series with these properties."""
    if not is_enabled:
        return UNSCHEDULED
    return allowed_age_seconds(schedule, zone, limit_seconds=limit_seconds, jitter_seconds=later_seconds)


def outdated_series(now: datetime) -> list[int]:
    """Return the primary keys of the series whose counted states are not those of *now*."""
    behind = [row.id for row in latest_sql.behind("true", [])]
    with binary.cursor() as cursor:
        rows = cursor.execute(standings_sql.OUTDATED.encode(), {"now": now}, prepare=False).fetchall()
    return sorted({*behind, *(key for (key,) in rows)})


def possibly_failing(now: datetime) -> list[int] | None:
    """Return the primary keys of all series that fail at *now*, and of a few others.

    None if the counted states of so many series are not those of *now* that it is cheaper to read all states.
    """
    outdated = outdated_series(now)
    if len(outdated) > latest.MOST_LISTED:
        return None
    with binary.cursor() as cursor:
        rows = cursor.execute(standings_sql.FAILING_SERIES.encode(), prepare=False).fetchall()
    return sorted({*outdated, *(key for (key,) in rows)})


def stored_counts(grouped: GroupedBy) -> StandingCounts:
    suites = list(grouped.suites)
    columns = {**_COUNTS, "group": grouped.expression()}
    rows = column_arrays.read(columns, standings_sql.COUNTS, [suites, suites, list(grouped.without)])
    return StandingCounts(**{**rows, "group": grouped.column(rows["group"])})


def stored_outcomes(grouped: GroupedBy, now: datetime) -> dict[State, int]:
    """Count the ended runs of the last hour by state."""
    suites, without = list(grouped.suites), list(grouped.without)
    parameters = {"suites": suites, "without": without, "start": now - LAST_HOUR, "end": now}
    with binary.cursor() as cursor:
        rows = cursor.execute(standings_sql.RUNS.encode(), parameters, prepare=False).fetchall()
    return {latest.LETTERS[letter]: n for letter, n in rows if n}


def stored_failing(grouped: GroupedBy) -> SeriesStates:
    """Return the states of the failing series; their outcomes are left out."""
    columns = {**_STATES, "group": grouped.expression()}
    rows = column_arrays.read(columns, standings_sql.FAILING, [list(grouped.suites), list(grouped.without)])
    group = grouped.column(rows.pop("group"))
    return SeriesStates(
        group=group,
        recent=np.full((len(group), TREND_RUNS), b" "),
        is_imported=np.zeros(len(group), dtype=bool),  # imported series are not counted
        **rows,
    )


def stored_failing_at(grouped: GroupedBy) -> dict[int, int]:
    """Return by site (key) how many series failed there in their last run, also of stale ones."""
    parameters = {"suites": list(grouped.suites), "without": list(grouped.without)}
    with binary.cursor() as cursor:
        statement = standings_sql.FAILING_AT_SITES.encode()
        return dict(cursor.execute(statement, parameters, binary=True, prepare=False).fetchall())


def stored_at_sites(grouped: GroupedBy, sites: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """Return ``series``, ``group``, ``site`` and ``ended_at`` of the series at *sites*, each at each."""
    columns = {
        **{name: _STATES[name] for name in ("series", "ended_at")},
        "group": grouped.expression(),
        "site": ("integer", "site_id"),
    }
    parameters = {"sites": list(sites), "suites": list(grouped.suites), "without": list(grouped.without)}
    rows = column_arrays.read(columns, standings_sql.AT_SITES, parameters)
    return {**rows, "group": grouped.column(rows["group"])}


def stored_totals(
    grouped: GroupedBy, sites: Sequence[int], now: datetime
) -> list[tuple[int, int, datetime | None, int]]:
    """Return of each of *sites* its key, the number of its series, their newest result and best freshness."""
    parameters = {"sites": list(sites), "suites": list(grouped.suites), "without": list(grouped.without)}
    with binary.cursor() as cursor:
        # Not prepared: the best plan for one site is not that for all of them.
        statement = standings_sql.TOTALS.encode()
        rows = cursor.execute(statement, {**parameters, "now": now}, binary=True, prepare=False)
        return rows.fetchall()


def stored_states(grouped: GroupedBy, reporters: Sequence[int]) -> list[tuple[int, str, int]]:
    """Return the number of series by reporter (key) and state, a letter; empty if no run was executed."""
    parameters = {"suites": list(grouped.suites), "without": list(grouped.without)}
    with binary.cursor() as cursor:
        rows = cursor.execute(
            standings_sql.BY_REPORTER.encode(), {**parameters, "reporters": list(reporters)}
        )
        return [(reporter, "" if letter == "s" else letter, n) for reporter, letter, n in rows if n]
