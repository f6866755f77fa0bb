"""A month of availability recomputed from the ledger, for 200 sites, against reading the same rows.

Measured are 500 series that use 200 sites and run every hour, and 500 series for each of 200 sites, which run
once a day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection

from monitor.analysis.availability import days_sql
from monitor.analysis.availability.compute import LONGEST_VALID, WantedDay, compute
from monitor.analysis.availability.versions import all_versions
from monitor.core.db.partitions import create_for
from monitor.models import Reporter, Site, Suite
from tests.bench.base import Result, interleaved

SITES, DAYS = 200, 30
START = datetime(2026, 3, 1, tzinfo=UTC)
END = START + timedelta(days=DAYS)

# Each series sends from its site to another one; one in eight runs fails, at one of the two.
_SERIES = """
INSERT INTO monitor_series (suite_id, name, probe, parameters, reporter_id, schedule, timezone, follows,
    delay_seconds, jitter_seconds, retry_schedule, retry_passes, exclusive, exclusive_wait_seconds,
    warm_up_runs, enabled, limit_seconds, created_at)
SELECT %(suite)s, 'series-' || number, (ARRAY['circle', 'gather', 'login'])[number %% 3 + 1], '{}',
    %(reporter)s, '', 'UTC', '', 0, 0, '', 1, '', 900, 0, true, 1800, now()
FROM generate_series(0, %(series)s - 1) AS number
"""
_BINDINGS = """
INSERT INTO monitor_binding (series_id, role, position, resource_id)
SELECT series.id, role, 0, resource.id
FROM (SELECT id, substr(name, 8)::int AS number FROM monitor_series) AS series
CROSS JOIN (VALUES ('source', 0), ('target', 1)) AS roles (role, shift)
JOIN monitor_resource AS resource
    ON resource.name = 'host-' || (number + shift * (1 + number / %(sites)s %% 7)) %% %(sites)s
"""
_RUNS = """
INSERT INTO monitor_run (id, slot, state, reason, attempt, stage, failed_resource, series_id, cause, trigger,
    due_at, forced)
SELECT gen_random_uuid(), slot, CASE WHEN has_failed THEN 'failed' ELSE 'passed' END, '', 1, '',
    CASE WHEN has_failed THEN 'host-' || (number + hour %% 2) %% %(sites)s ELSE '' END, id, '', 'schedule',
    slot, false
FROM (SELECT id, substr(name, 8)::int AS number FROM monitor_series) AS series
CROSS JOIN generate_series(0, (%(days)s + 5) * 24 - 1, %(step)s) AS hour
CROSS JOIN LATERAL (
    SELECT %(start)s - interval '3 days' + hour * interval '1 hour'
            + number %% 3600 * interval '1 second' AS slot,
        hashint4(number * 1000 + hour) %% 8 = 0 AS has_failed
) AS result
"""
_READ = "SELECT series_id, slot, state, failed_resource FROM monitor_run WHERE slot >= %s AND slot < %s"


def measure() -> list[Result]:
    suite, reporter = Suite.objects.create(name="main"), Reporter.objects.create(name="home")
    for number in range(SITES):
        site = Site.objects.create(name=f"site-{number}")
        site.resources.create(name=f"host-{number}", scratch="/scratch")
    create_for([START + timedelta(days=day) for day in range(-3, DAYS + 3)])
    results = []
    cases = (("500 series, hourly", 500, 1, 3), ("100,000 series, daily", 100_000, 24, 1))
    for name, series, step, rounds in cases:
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE monitor_run, monitor_binding, monitor_series, monitor_dirtyday CASCADE")
            cursor.execute("ALTER TABLE monitor_run DISABLE TRIGGER USER")
            parameters = {"suite": suite.pk, "reporter": reporter.pk, "series": series, "sites": SITES}
            cursor.execute(_SERIES, parameters)
            cursor.execute(_BINDINGS, parameters)
            cursor.execute(_RUNS, {"start": START, "days": DAYS, "step": step, "sites": SITES})
            cursor.execute("ANALYZE")
        results.append(_month(name, rounds))
    return results


def _month(name: str, rounds: int) -> Result:
    ours, reference = interleaved(_recompute, _read, rounds)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM monitor_run")
        (runs,) = cursor.fetchone()
    figures = {"runs": float(runs), "recomputed, s": ours, "read, s": reference}
    title = f"availability: a month of 200 sites, {name} / SELECT of its rows"
    return Result(title, ours / reference, 2, "lower", figures)


def _recompute() -> None:
    versions = all_versions()
    days = [(START + timedelta(days=number)).date() for number in range(DAYS)]
    wanted = [
        WantedDay(key, day, versions.find(key, day))
        for key in Site.objects.values_list("pk", flat=True)
        for day in days
    ]
    days_sql.store(compute(wanted, END), END)


def _read() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_READ, [START - LONGEST_VALID, END + timedelta(days=2)])
        while cursor.fetchmany(10_000):
            pass
