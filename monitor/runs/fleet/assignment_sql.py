"""Read the series of a reporter for its assignment in one statement: every exchange executes it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from monitor.core.db import binary
from monitor.models.series import IMPORTED, REPORTED_PROBE, Follows
from reporters.report import rfc3339

# A series that follows a leader has the leader's schedule. Without the leader it has none: it is then run on
# request only. An agent can wait only for its own runs, so the leader of a series that runs after it must be
# one of the same reporter.
_SERIES = """
SELECT json_build_object(
    'name', series.name, 'probe', series.probe, 'parameters', series.parameters,
    'jitter_seconds', series.jitter_seconds, 'exclusive', series.exclusive,
    'exclusive_wait_seconds', series.exclusive_wait_seconds, 'limit_seconds', series.limit_seconds,
    'max_load1', series.max_load1, 'warm_up_runs', series.warm_up_runs,
    'delay_seconds', series.delay_seconds,
    'schedule', CASE WHEN is_timed THEN timed.schedule ELSE '' END,
    'schedule_name', timed.name, 'timezone', timed.timezone,
    'starts_at', timed.starts_at, 'ends_at', timed.ends_at,
    'after', CASE WHEN is_timed AND series.follows = %(after)b THEN timed.name END
)::text, suite.name, (
    SELECT json_agg(json_build_array(binding.role, resource.name, site.name, resource.scratch,
            resource.shell, resource.transfer, resource.batch, resource.address
        ) ORDER BY binding.role, binding.position)
    FROM monitor_binding AS binding
        JOIN monitor_resource AS resource ON resource.id = binding.resource_id
        JOIN monitor_site AS site ON site.id = resource.site_id
    WHERE binding.series_id = series.id)::text
FROM monitor_series AS series
    JOIN monitor_suite AS suite ON suite.id = series.suite_id
    JOIN monitor_series AS timed ON timed.id = coalesce(series.leader_id, series.id)
    CROSS JOIN LATERAL (SELECT timed.enabled
        AND (series.follows <> %(after)b OR timed.reporter_id = series.reporter_id)) AS timing (is_timed)
WHERE series.reporter_id = %(reporter)b AND series.enabled AND NOT starts_with(series.probe, %(imported)b)
    AND series.probe <> %(reported)b
ORDER BY series.name
"""


class SeriesRow(msgspec.Struct):
    """A series as the agent reads it, without its bindings, its suite, and its bindings with resources."""

    fields: dict[str, Any]
    suite: str
    bindings: list[list[Any]]


def read_series(reporter: int) -> list[SeriesRow]:
    """Return the enabled series of the reporter with this key, sorted by name.

    A binding is a list: role, resource, site, scratch, shell, transfer, batch, address.
    """
    parameters = {
        "reporter": reporter, "after": Follows.AFTER.value, "imported": IMPORTED, "reported": REPORTED_PROBE
    }  # fmt: skip
    with binary.cursor() as cursor:
        cursor.execute(_SERIES, parameters)
        return [
            SeriesRow(_with_times(fields), suite, msgspec.json.decode(bindings) if bindings else [])
            for fields, suite, bindings in cursor.fetchall()
        ]


def _with_times(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(text)
    for key in ("starts_at", "ends_at"):
        if fields[key] is not None:
            fields[key] = rfc3339(datetime.fromisoformat(fields[key]))
    return fields
