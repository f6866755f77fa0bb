"""Start claimed runs: mark them as running and read their assignments, in one statement.

Every run waits for this statement; one query per table would take five times as long.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db import connection

from monitor.depot.series.expected_seconds import EXPECTED_METRICS
from monitor.depot.series.segments import local_identity
from monitor.models.run import State
from monitor.runs.ledger.claim import lease_until
from reporters.config import Assignment, ResourceConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_START = """
WITH started AS (
    UPDATE monitor_run
    SET state = %(running)s, cause = 'its reporter started it', started_at = %(now)s, lease_until = %(lease)s
    WHERE id = ANY (%(runs)s) {of_slots} AND state = %(claimed)s AND EXISTS (
        SELECT FROM monitor_series AS series
            JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
        WHERE series.id = monitor_run.series_id AND reporter.site_id IS NULL)
    RETURNING id, attempt, slot, series_id
)
SELECT started.id, started.attempt, started.slot,
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
            SELECT upper FROM monitor_forecaststate AS state
            JOIN monitor_forecast AS forecast ON forecast.id = state.forecast_id
            WHERE state.metric_id = metric.id)))
        FROM monitor_segment AS segment JOIN monitor_metric AS metric ON metric.segment_id = segment.id
        WHERE segment.series_id = series.id AND metric.name = ANY (%(expected)s))::text
FROM started
    JOIN monitor_series AS series ON series.id = started.series_id
    JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
ORDER BY started.slot
"""


class _Row(NamedTuple):
    """A row of ``_START``; *series*, *bindings* and *forecasts* are JSON text."""

    run_id: uuid.UUID
    attempt: int
    slot: datetime
    series: str
    bindings: str | None
    forecasts: str | None


@dataclass(frozen=True)
class StartedRun:
    """A run that has been marked as running, its assignment, and the number of this attempt."""

    run_id: uuid.UUID
    attempt: int
    assignment: Assignment


def start_runs(
    run_ids: Iterable[uuid.UUID], now: datetime, slots: Collection[datetime] | None = None
) -> list[StartedRun]:
    """Start the runs that are still claimed; return them, oldest first.

    A task may arrive twice, or after its run has been claimed again: the first task starts the run. A run
    whose series is an agent's by now is not started. Without *slots* every partition of the ledger is read.
    """
    parameters: dict[str, Any] = {
        "runs": list(run_ids),
        "slots": list(slots or ()),
        "now": now,
        "lease": lease_until(now),
        "claimed": State.CLAIMED,
        "running": State.RUNNING,
        "expected": list(EXPECTED_METRICS),
    }
    statement = _START.format(of_slots="" if slots is None else "AND slot = ANY (%(slots)s)")
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = [_Row(*row) for row in cursor.fetchall()]
    return [StartedRun(row.run_id, row.attempt, _assignment(row)) for row in rows]


def _assignment(row: _Row) -> Assignment:
    series: dict[str, Any] = json.loads(row.series)
    roles: dict[str, list[str]] = {}
    resources = {}
    for role, resource in json.loads(row.bindings or "[]"):
        roles.setdefault(role, []).append(resource["name"])
        resources[resource["name"]] = ResourceConfig(**resource)
    return Assignment(
        **series,
        slot=row.slot,
        bindings=roles,
        resources=resources,
        state_directory=str(settings.VAR_DIR / "series"),
        expected_seconds=_expected_seconds(series, roles, json.loads(row.forecasts or "[]")),
    )


def _expected_seconds(
    series: Mapping[str, Any],
    roles: Mapping[str, list[str]],
    forecasts: Iterable[tuple[str, str, float | None]],
) -> dict[str, float]:
    """Return, by metric, the upper bound in seconds of the newest forecast of each of ``EXPECTED_METRICS``.

    Only forecasts for the current configuration of the series count; just after a change there are no such
    forecasts.
    """
    fingerprint = local_identity(series["probe"], series["parameters"], roles).fingerprint
    return {
        metric: upper for segment, metric, upper in forecasts if segment == fingerprint and upper is not None
    }
