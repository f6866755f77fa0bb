"""Begin claimed runs: mark them as running and read what is to be done, in one statement.

Every run pays for this; asked one after the other, the same tables cost five times as much.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection

from monitor.ledger.claim import lease_until
from monitor.models.run import State
from monitor.series.segments import local_identity
from reporters.config import Assignment, ResourceConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# What probes ask for: credentials must outlast the run, a job's wall-clock limit its compute stage.
EXPECTED_METRICS = ("total.seconds", "stage.compute.seconds")

_BEGIN = """
WITH begun AS (
    UPDATE monitor_run
    SET state = %(running)s, cause = 'its reporter began it', started_at = %(now)s, lease_until = %(lease)s
    WHERE id = ANY (%(runs)s) {of_slots} AND state = %(claimed)s
    RETURNING id, attempt, slot, series_id
)
SELECT begun.id, begun.attempt, begun.slot,
    json_build_object(
        'series', series.name, 'reporter', reporter.name, 'probe', series.probe,
        'parameters', series.parameters, 'limit_seconds', series.limit_seconds,
        'max_load1', series.max_load1, 'warm_up_runs', series.warm_up_runs
    )::text,
    (SELECT json_agg(json_build_array(binding.role, json_build_object(
            'name', resource.name, 'site', site.name, 'scratch', resource.scratch, 'shell', resource.shell,
            'transfer', resource.transfer, 'batch', resource.batch, 'address', resource.address
        )) ORDER BY binding.role, binding.position)
        FROM monitor_binding AS binding
            JOIN monitor_resource AS resource ON resource.id = binding.resource_id
            JOIN monitor_site AS site ON site.id = resource.site_id
        WHERE binding.series_id = series.id)::text,
    (SELECT json_agg(json_build_array(segment.fingerprint, metric.name, (
            SELECT upper FROM monitor_forecaststate AS forecast WHERE forecast.metric_id = metric.id)))
        FROM monitor_segment AS segment JOIN monitor_metric AS metric ON metric.segment_id = segment.id
        WHERE segment.series_id = series.id AND metric.name = ANY (%(expected)s))::text
FROM begun
    JOIN monitor_series AS series ON series.id = begun.series_id
    JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
ORDER BY begun.slot
"""

_Row = tuple[uuid.UUID, int, datetime, str, str | None, str | None]


@dataclass(frozen=True)
class _Bound:
    """The resources of each role, in order, and what they are."""

    roles: Mapping[str, list[str]]
    resources: Mapping[str, ResourceConfig]


@dataclass(frozen=True)
class StartedRun:
    """A run that is under way, what it is to do, and which *attempt* at it this is."""

    run_id: uuid.UUID
    attempt: int
    assignment: Assignment


def start_runs(
    run_ids: Iterable[uuid.UUID], now: datetime, slots: Collection[datetime] | None = None
) -> list[StartedRun]:
    """Begin those of the runs that are claimed, and still are, oldest first. Without their *slots* all parts
    of the ledger are looked at.

    A task may arrive twice, or late, after its run has been claimed again: whichever comes first begins it.
    """
    told: dict[str, Any] = {
        "runs": list(run_ids),
        "slots": list(slots or ()),
        "now": now,
        "lease": lease_until(now),
        "claimed": State.CLAIMED,
        "running": State.RUNNING,
        "expected": list(EXPECTED_METRICS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN.format(of_slots="" if slots is None else "AND slot = ANY (%(slots)s)"), told)
        rows: list[_Row] = cursor.fetchall()
    return [StartedRun(row[0], row[1], _assignment(*row[2:])) for row in rows]


def _assignment(slot: datetime, series: str, bindings: str | None, forecasts: str | None) -> Assignment:
    said: dict[str, Any] = json.loads(series)
    bound = _bound(json.loads(bindings or "[]"))
    return Assignment(
        **said,
        slot=slot,
        bindings=bound.roles,
        resources=bound.resources,
        expected_seconds=_expected(said, bound, json.loads(forecasts or "[]")),
    )


def _bound(bindings: Iterable[tuple[str, Mapping[str, Any]]]) -> _Bound:
    roles: dict[str, list[str]] = {}
    resources = {}
    for role, resource in bindings:
        roles.setdefault(role, []).append(resource["name"])
        resources[resource["name"]] = ResourceConfig(**resource)
    return _Bound(roles, resources)


def _expected(
    series: Mapping[str, Any], bound: _Bound, forecasts: Iterable[tuple[str, str, float | None]]
) -> dict[str, float]:
    """The upper bound of the newest forecast of each metric in ``EXPECTED`` for what *series* runs now.

    Without those that have none, as all are when what it runs has just changed.
    """
    would_run = local_identity(series["probe"], series["parameters"], bound.roles).fingerprint
    return {metric: upper for of, metric, upper in forecasts if of == would_run and upper is not None}
