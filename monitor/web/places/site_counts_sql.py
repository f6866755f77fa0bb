"""The SQL of lists of sites: how many series fail at each, and how new its newest results are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg.rows import RowFactory, class_row, tuple_row

from monitor.core.db import binary
from monitor.models.series import IMPORTED
from monitor.models.suite import VISIBLE, visibility
from monitor.runs.ledger.attribution import GRID_FAILURES
from monitor.web.status.latest_sql import current_rows

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

# Suites are few, so their visibility is decided first; IS TRUE keeps it a filter of rows.
_VISIBLE_SUITES = f"""WITH visible AS MATERIALIZED (
    SELECT series.suite_id FROM (SELECT id AS suite_id FROM monitor_suite) AS series WHERE {VISIBLE}
)"""  # noqa: S608  # constants of this module
_FAILED = f"latest.state IN ({', '.join(repr(str(state)) for state in GRID_FAILURES)})"


def _failing(chosen: str) -> str:
    return f"""
{_VISIBLE_SUITES}
SELECT resource.site_id, count(*)
FROM {current_rows(chosen, with_hours=False)} AS latest
JOIN monitor_resource AS resource ON resource.name = latest.failed_resource
JOIN monitor_series AS series ON series.id = latest.series_id
WHERE {_FAILED} AND latest.failed_resource <> '' AND NOT starts_with(series.probe, '{IMPORTED}')
    AND (series.suite_id IN (SELECT suite_id FROM visible)) IS TRUE
GROUP BY 1
"""  # noqa: S608  # constants of this module


_LATEST_OF_BOUND = current_rows("series_id IN (SELECT series_id FROM bound)", with_hours=False)


def _counts(chosen: str) -> str:
    # Series with the same schedule share a row: the age that it allows is computed once for all of them.
    return f"""
{_VISIBLE_SUITES}, bound AS (
    SELECT DISTINCT resource.site_id, binding.series_id
    FROM monitor_resource AS resource JOIN monitor_binding AS binding ON binding.resource_id = resource.id
    WHERE resource.site_id = ANY (%(sites)b) AND {chosen}
)
SELECT bound.site_id AS site, leader.schedule, leader.timezone, series.limit_seconds,
    series.jitter_seconds + series.delay_seconds AS delay_seconds,
    series.enabled AND leader.enabled AS is_enabled, series.probe LIKE '{IMPORTED}%%' AS is_imported,
    count(*) AS series, max(coalesce(latest.ended_at, latest.slot)) AS newest
FROM bound
JOIN monitor_series AS series ON series.id = bound.series_id
JOIN monitor_series AS leader ON leader.id = coalesce(series.leader_id, series.id)
LEFT JOIN {_LATEST_OF_BOUND} AS latest ON latest.series_id = bound.series_id
WHERE (series.suite_id IN (SELECT suite_id FROM visible)) IS TRUE
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""  # noqa: S608  # constants of this module


_ALL, _SOME = "true", "series_id = ANY (%(series)b::bigint[])"
# By whether all series count. A condition for either would keep PostgreSQL from looking up the few.
_FAILING = {True: _failing(_ALL), False: _failing(_SOME)}
_COUNTS = {True: _counts(_ALL), False: _counts(f"binding.{_SOME}")}


@dataclass(frozen=True)
class SeriesGroup:
    """The *series* of a *site* (primary key) with the same schedule and limits.

    Attributes:
        newest: when the newest of their runs ended that were not skipped; None if there is none.
    """

    site: int
    schedule: str
    timezone: str
    limit_seconds: float
    delay_seconds: int
    is_enabled: bool
    is_imported: bool
    series: int
    newest: datetime | None


def failing_by_site(user: AbstractBaseUser | AnonymousUser, series: Collection[int] | None) -> dict[int, int]:
    """Return how many of *series* (None: all) that *user* may see failed in their last run, by its site.

    Sites are primary keys; those without one are absent. *user* must be logged in and active.
    """
    return dict(_rows(_FAILING, series, visibility(user), tuple_row))


def series_groups(
    user: AbstractBaseUser | AnonymousUser, sites: Collection[int], series: Collection[int] | None
) -> list[SeriesGroup]:
    """Return the *series* (None: all) of *sites*, by primary keys, that *user* may see, in groups."""
    parameters = {"sites": list(sites), **visibility(user)}
    return _rows(_COUNTS, series, parameters, class_row(SeriesGroup))


def _rows(
    statements: Mapping[bool, str],
    series: Collection[int] | None,
    parameters: Mapping[str, object],
    row_factory: RowFactory[Any],
) -> list[Any]:
    if series is not None and not series:
        return []
    query, parameters = statements[series is None].encode(), {**parameters, "series": list(series or ())}
    with binary.cursor() as cursor:
        cursor.row_factory = row_factory
        return cursor.execute(query, parameters, binary=True, prepare=False).fetchall()
