"""SQL of what the newest runs say about resources: failures in a row, passed runs, the newest result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from psycopg.rows import class_row

from monitor.core.db import binary
from monitor.models.run import State
from monitor.models.series import IMPORTED
from monitor.models.suite import OF_THE_PUBLIC, VISIBLE, visibility

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

LEAST_FAILURES = 3  # in a row, of all series together
EXPIRES = timedelta(days=2)  # a resource that has not been used for so long may work again

_RESULT_AT = f"""CASE WHEN latest.state IN ('{State.PASSED}', '{State.FAILED}', '{State.TIMED_OUT}')
            THEN latest.slot ELSE slots[length(substring(outcomes FROM '^.*[pft]'))] END"""
# Imported history says nothing about the present.
_IS_CURRENT = f"NOT starts_with(series.probe, '{IMPORTED}')"
_NOT_IMPORTED = f"""binding.series_id <> ALL (
        ARRAY(SELECT id FROM monitor_series WHERE probe LIKE '{IMPORTED}%%'))"""  # noqa: S608  # a constant
# Only visible series count: users do not learn that other series fail. Suites are few, so their visibility is
# decided first. The outcomes pft are results about the grid; a skipped slot (s) does not interrupt failures.
# A series may bind a resource in several roles, but counts once.
_RESULTS = f"""
WITH visible AS MATERIALIZED (
    SELECT series.suite_id FROM (SELECT id AS suite_id FROM monitor_suite) AS series WHERE {VISIBLE}
), bound AS MATERIALIZED (
    SELECT resource.name, binding.series_id
    FROM monitor_resource AS resource JOIN monitor_binding AS binding ON binding.resource_id = resource.id
    WHERE resource.name = ANY (%(resources)b) AND {_NOT_IMPORTED}
), evidence AS MATERIALIZED (
    SELECT resource.name, latest.series_id, trail, latest.ended_at,
        {_RESULT_AT} AS result_at,
        CASE WHEN failed_resources <> '{{{{}}}}' THEN (
            SELECT max(run.slot) FROM unnest(slots, failed_resources) AS run (slot, failed)
            WHERE failed = resource.name) END AS failed_at,
        CASE WHEN trail IS NOT NULL THEN slots[length(outcomes) - length(trail) + 1] END AS failing_since,
        latest.state = '{State.PASSED}' AS is_passed
    FROM bound AS resource
    JOIN ({{latest}}) AS latest ON latest.series_id = resource.series_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN latest.state IN ('{State.FAILED}', '{State.TIMED_OUT}')
            AND failed_resource = resource.name THEN substring(outcomes FROM '[fts]+$') END AS trail
    ) AS failure
), failing AS (
    SELECT name, sum(length(replace(trail, 's', '')))::bigint AS failures,
        min(failing_since) AS failing_since, max(ended_at) AS failure_ended_at
    FROM (
        SELECT DISTINCT ON (name, series_id) name, trail, failing_since, ended_at FROM evidence
        WHERE trail IS NOT NULL
    ) AS failed
    GROUP BY name
), results AS (
    SELECT name, max(ended_at) FILTER (WHERE is_passed) AS passed_at, max(failed_at) AS failed_at,
        max(result_at) AS result_at
    FROM evidence GROUP BY name
)
SELECT results.name, coalesce(failures, 0) AS failures, failing_since, failure_ended_at, passed_at, failed_at,
    result_at
FROM results LEFT JOIN failing ON failing.name = results.name
"""  # noqa: S608  # constants of this module

# The series that a user without ``sees_all`` may see. Their standings tell suite and site; reading the rows
# of the series would take as long as the rest of the statement. Only series that changed since they were
# counted are looked up there. Sorted keys in an array are found in less time than those of a join.
_VISIBLE_LATEST = """
    SELECT * FROM monitor_latestrun WHERE series_id = ANY (ARRAY(
        SELECT series_id FROM monitor_seriesstanding
        WHERE sites[1] = ANY (ARRAY(SELECT site_id FROM monitor_resource WHERE name = ANY (%(resources)b)))
            AND suite_id IN (SELECT suite_id FROM visible)
            AND series_id NOT IN (SELECT series_id FROM monitor_standingchange)
        UNION ALL
        SELECT series_id FROM monitor_seriesstanding
        WHERE cardinality(sites) > 1
            AND sites && ARRAY(SELECT site_id FROM monitor_resource WHERE name = ANY (%(resources)b))
            AND suite_id IN (SELECT suite_id FROM visible)
            AND series_id NOT IN (SELECT series_id FROM monitor_standingchange)
        UNION ALL
        SELECT series.id FROM monitor_standingchange AS changed
        JOIN monitor_series AS series ON series.id = changed.series_id
        WHERE series.suite_id IN (SELECT suite_id FROM visible)
        ORDER BY 1
    )) OFFSET 0"""

# What ``ResourceResults.is_failing`` decides, from the series that fail now: they are few, and have an index.
_FAILING = f"""
SELECT failing.name FROM (
    SELECT name, id, min(failing_since) AS failing_since FROM (
        SELECT DISTINCT ON (resource.id, latest.series_id) resource.name, resource.id, latest.ended_at,
            length(replace(trail, 's', '')) AS failures,
            slots[length(outcomes) - length(trail) + 1] AS failing_since
        FROM monitor_latestrun AS latest
        JOIN monitor_resource AS resource ON resource.name = latest.failed_resource
        JOIN monitor_binding AS binding
            ON binding.resource_id = resource.id AND binding.series_id = latest.series_id
        JOIN monitor_series AS series ON series.id = latest.series_id
        CROSS JOIN LATERAL substring(outcomes FROM '[fts]+$') AS trail
        WHERE latest.state IN ('{State.FAILED}', '{State.TIMED_OUT}') AND trail IS NOT NULL
            AND failed_resource = ANY (%(resources)b) AND {_IS_CURRENT} AND {VISIBLE}
    ) AS failed
    GROUP BY name, id HAVING sum(failures) >= {LEAST_FAILURES} AND max(ended_at) > %(since)b
) AS failing
WHERE NOT EXISTS (
    SELECT FROM monitor_binding AS binding
    JOIN monitor_series AS series ON series.id = binding.series_id
    JOIN monitor_latestrun AS latest ON latest.series_id = binding.series_id
    WHERE binding.resource_id = failing.id AND latest.state = '{State.PASSED}'
        AND latest.ended_at >= failing_since AND {_IS_CURRENT} AND {VISIBLE} OFFSET 0
)
"""  # noqa: S608  # constants of this module
# OFFSET 0 keeps EXISTS from becoming a join of all series: the first newest result of a resource is enough.
_KNOWN = f"""
SELECT resource.name FROM monitor_resource AS resource
WHERE resource.name = ANY (%(resources)b) AND EXISTS (
    SELECT FROM monitor_binding AS binding
    JOIN monitor_series AS series ON series.id = binding.series_id
    JOIN monitor_latestrun AS latest ON latest.series_id = binding.series_id
    WHERE binding.resource_id = resource.id AND {_RESULT_AT} > %(since)b
        AND {_IS_CURRENT} AND {VISIBLE} OFFSET 0
)
"""  # noqa: S608  # constants of this module


@dataclass(frozen=True)
class ResourceResults:
    """What the newest runs of visible series say about the resource *name*.

    Attributes:
        failures: how many of the newest runs failed there in a row, of all series together.
        failing_since: the slot of the first of them; None without failures.
        failure_ended_at: when the last of them ended.
        passed_at: when the last run ended among those that are the newest of their series and passed.
        failed_at: the slot of the newest run that failed there, of the newest 20 runs of each series.
        result_at: the slot of the newest run that passed or failed; None if there is none.
    """

    name: str
    failures: int
    failing_since: datetime | None
    failure_ended_at: datetime | None
    passed_at: datetime | None
    failed_at: datetime | None
    result_at: datetime | None

    def is_failing(self, now: datetime) -> bool:
        """Return whether the newest runs that used it failed there, and none has passed since."""
        if self.failures < LEAST_FAILURES or self.failing_since is None or self.failure_ended_at is None:
            return False
        has_passed = self.passed_at is not None and self.passed_at >= self.failing_since
        return self.failure_ended_at > now - EXPIRES and not has_passed

    def is_known(self, now: datetime) -> bool:
        """Return whether a run has passed or failed lately."""
        return self.result_at is not None and self.result_at > now - EXPIRES

    @property
    def words(self) -> str:
        since = f"{self.failing_since:%Y-%m-%d %H:%M} UTC"
        return f"the last {self.failures} runs failed at {self.name}, since {since}"


def resource_results(
    user: AbstractBaseUser | AnonymousUser | None, resources: Collection[str]
) -> dict[str, ResourceResults]:
    """Return the results of the newest runs at each of *resources*, by name, as *user* may see them.

    Resources without a visible run are absent. *user* must be logged in and active; None
    is the public: the runs of suites without viewers count.
    """
    parameters = {"resources": list(resources), **(visibility(user) if user else OF_THE_PUBLIC)}
    query = _RESULTS.format(latest="TABLE monitor_latestrun" if parameters["sees_all"] else _VISIBLE_LATEST)
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(ResourceResults)
        # Not prepared: the best plan for one resource is not that for all of them.
        rows = cursor.execute(query.encode(), parameters, binary=True, prepare=False).fetchall()
    return {row.name: row for row in rows}


def failing_resources(
    user: AbstractBaseUser | AnonymousUser | None, resources: Collection[str], now: datetime
) -> set[str]:
    """Return those of *resources* that ``ResourceResults.is_failing`` finds failing at *now*."""
    return _names(_FAILING, user, resources, now)


def known_resources(
    user: AbstractBaseUser | AnonymousUser | None, resources: Collection[str], now: datetime
) -> set[str]:
    """Return those of *resources* with a result that ``ResourceResults.is_known`` counts at *now*."""
    return _names(_KNOWN, user, resources, now)


def _names(
    query: str, user: AbstractBaseUser | AnonymousUser | None, resources: Collection[str], now: datetime
) -> set[str]:
    parameters = {"resources": list(resources), "since": now - EXPIRES}
    parameters |= visibility(user) if user else OF_THE_PUBLIC
    with binary.cursor() as cursor:
        rows = cursor.execute(query.encode(), parameters, binary=True, prepare=False).fetchall()
    return {name for (name,) in rows}
