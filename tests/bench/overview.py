"""The overview of 500 sites with 200 series each, compared with SQL, and while four senders write."""

from __future__ import annotations

from typing import Any

import psycopg
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client, override_settings
from django.utils import timezone

from monitor.core.db import partitions
from monitor.models import Series
from monitor.web.matrix.matrix import overview_of_groups
from monitor.web.status import latest_sql, standings
from monitor.web.status.latest import latest
from tests.bench import writers
from tests.bench.base import Result, interleaved, seconds

SITES, SERIES, SUITES = 500, 200, 10  # series per site
HOURS = 24
AT_ONCE = 10_000
TIMES = 9
ASKED = 20  # repetitions in each part, while others write and idle
ONE_IN = 100  # series fails, and another is skipped

LOAD = """
INSERT INTO monitor_reporter (name, capacity) VALUES ('wide', 1);
INSERT INTO monitor_suite (name, title) SELECT 'suite-' || n, '' FROM generate_series(1, {suites}) AS n;
INSERT INTO monitor_site (name, title) SELECT 'site-' || n, '' FROM generate_series(1, {sites}) AS n;
INSERT INTO monitor_resource (name, site_id, scratch, shell, transfer, batch, address)
SELECT 'host-of-' || name, id, '/scratch', '{{}}', '{{}}', '{{}}', '' FROM monitor_site
WHERE name LIKE 'site-%';
INSERT INTO monitor_series (name, probe, parameters, schedule, enabled, limit_seconds, created_at,
    reporter_id, suite_id, timezone, exclusive, exclusive_wait_seconds, jitter_seconds, delay_seconds,
    follows, retry_passes, retry_schedule, warm_up_runs)
SELECT site.name || '-login-' || n, 'login', '{{}}', 'H * * * *', true, 60, now() - interval '1 day',
    reporter.id, suite.id, 'UTC', '', 0, 0, 0, '', 1, '', 0
FROM monitor_site AS site, generate_series(1, {series}) AS n, monitor_reporter AS reporter,
    monitor_suite AS suite
WHERE site.name LIKE 'site-%' AND reporter.name = 'wide' AND suite.name = 'suite-' || n % {suites} + 1
ORDER BY random();
CREATE TEMPORARY TABLE wide AS
SELECT series.id, series.name, resource.name AS host, resource.id AS resource_id
FROM monitor_series AS series
JOIN monitor_resource AS resource ON resource.name = 'host-of-' || split_part(series.name, '-login', 1);
INSERT INTO monitor_binding (series_id, resource_id, role, position)
SELECT id, resource_id, 'target', 0 FROM wide;
INSERT INTO monitor_segment (series_id, number, probe, probe_version, parameters, bindings, fingerprint,
    began_at)
SELECT id, 1, 'login', '1.0', '{{}}', '{{}}', '', now() FROM wide;
INSERT INTO monitor_metric (segment_id, name, unit)
SELECT segment.id, 'total.seconds', 'seconds' FROM monitor_segment AS segment
JOIN wide ON wide.id = series_id;
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT metric.id, slot, slot, 1 + random(), true
FROM generate_series({hours} - 1, 0, -1) AS ago,
    (SELECT metric.id FROM monitor_metric AS metric JOIN monitor_segment AS segment ON segment.id = segment_id
        JOIN wide ON wide.id = series_id) AS metric,
    LATERAL (SELECT date_trunc('minute', now()) - make_interval(hours => ago, mins => metric.id::int % 60)
        AS slot) AS at;
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', state, '', 1,
    CASE state WHEN 'failed' THEN 'run' ELSE '' END, CASE state WHEN 'failed' THEN host ELSE '' END, '',
    false, slot, slot
FROM wide, LATERAL (SELECT date_trunc('minute', now()) - make_interval(mins => id::int % 60) AS slot) AS at,
    LATERAL (SELECT CASE id % {one_in} WHEN 1 THEN 'failed' WHEN 2 THEN 'skipped' ELSE 'passed' END AS state)
        AS what;
DELETE FROM monitor_recheck;
"""
# The fastest known statement with the same answer for all sites, for a user who sees everything.
_COUNTED = """
SELECT resource.site_id, series.suite_id, left(latest.state, 1) || (blamed.site_id = resource.site_id)::int,
    count(*), max(latest.ended_at)
FROM monitor_series AS series
JOIN monitor_latestrun AS latest ON latest.series_id = series.id
JOIN monitor_binding AS binding ON binding.series_id = series.id
JOIN monitor_resource AS resource ON resource.id = binding.resource_id
LEFT JOIN monitor_resource AS blamed ON blamed.name = latest.failed_resource
GROUP BY 1, 2, 3
"""
_COPY = """
COPY (
    SELECT series.id, series.name, latest.state, latest.run, latest.slot, latest.ended_at, latest.stage,
        latest.failed_resource, latest.outcomes, latest.hours_end, latest.means
    FROM monitor_series AS series LEFT JOIN monitor_latestrun AS latest ON latest.series_id = series.id
) TO STDOUT (FORMAT BINARY)
"""


def measure() -> list[Result]:
    loading, bringing_up = load()
    reader = User.objects.create_user("bench-overview", is_superuser=True)
    now = timezone.now()
    client = Client()
    client.force_login(reader)
    with override_settings(ALLOWED_HOSTS=["*"]):
        page = min(seconds(lambda: client.get("/")) for _ in range(TIMES))
        site = min(seconds(lambda: client.get("/?site=site-7")) for _ in range(TIMES))
    overview, counted = interleaved(lambda: overview_of_groups(reader, now), _rows_counted, TIMES)
    newest, copied = interleaved(lambda: latest(Series.objects.all(), now), _rows_copied, TIMES)
    return [
        Result(
            name="overview of 500 x 200 series / SQL counting",
            ratio=overview / counted,
            target=1.0,
            better="lower",
            figures={
                "overview, ms": overview * 1000,
                "the same counted in SQL, ms": counted * 1000,
                "page with it, ms": page * 1000,
                "page of one site, ms": site * 1000,
            },
        ),
        Result(
            name="latest of 100,000 series / COPY of the rows",
            ratio=newest / copied,
            target=2.0,
            better="lower",
            figures={
                "latest, ms": newest * 1000,
                "COPY of the same rows in binary, ms": copied * 1000,
                "rows brought up to date/s": bringing_up,
                "loading, s": loading,
            },
        ),
        *_while_written_to(client),
    ]


def _while_written_to(client: Client) -> list[Result]:
    names = list(Series.objects.order_by("?").values_list("name", flat=True)[: writers.WRITTEN_TO])
    writers.tell_once(names)
    requests = {
        "page of 500 x 200 series": lambda: client.get("/"),
        "latest of 100,000 series": lambda: latest(Series.objects.all(), timezone.now()),
        "page of one site, 200 series": lambda: client.get("/?site=site-7"),
    }
    with override_settings(ALLOWED_HOSTS=["*"]):
        return writers.against_idle(requests, names, quantile=0.95, times=ASKED, target=3.0)


def load(sites: int = SITES, series: int = SERIES) -> tuple[float, float]:
    """So many series, each with a run and a day of values. How many seconds that took, and how many rows of
    the latest runs are updated in a second."""
    names = {"sites": sites, "series": series, "suites": SUITES, "hours": HOURS, "one_in": ONE_IN}

    def load_all() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT now() - interval '25 hours', now()")
            partitions.create_for(cursor.fetchone())
            cursor.execute(LOAD.format(**names))
            cursor.execute("ANALYZE")

    def bring_up() -> None:
        changed = [
            (key, timezone.now()) for key in Series.objects.order_by("pk").values_list("pk", flat=True)
        ]
        for begin in range(0, len(changed), AT_ONCE):
            with transaction.atomic():
                latest_sql.update_rows(changed[begin : begin + AT_ONCE])
                standings.recount_changed(changed[begin : begin + AT_ONCE])
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM monitor_standingchange")  # all are counted
            cursor.execute("VACUUM ANALYZE monitor_latestrun, monitor_seriesstanding, monitor_standingcount")

    loading, bringing_up = seconds(load_all), seconds(bring_up)
    return loading + bringing_up, sites * series / bringing_up


def _rows_counted() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED)
        cursor.fetchall()


def _rows_copied() -> None:
    with psycopg.Cursor[Any](connection.connection) as cursor, cursor.copy(_COPY) as copy:
        for _ in copy:
            pass
