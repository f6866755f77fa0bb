"""The pages of runs and failures over 100,000 series with a run an hour, half a day long."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings

from monitor.core.db import partitions
from monitor.models import FailureSignature, Run
from monitor.models.run import State
from tests.bench import overview
from tests.bench.base import Result, seconds

TIMES = 5
TARGET_MS = 100.0

_RUNS = """
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at, signature_id)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', CASE WHEN is_failed THEN 'failed' ELSE 'passed' END,
    CASE WHEN is_failed THEN 'run at ' || host || ': write failed' ELSE '' END, 1,
    CASE WHEN is_failed THEN 'run' ELSE '' END, CASE WHEN is_failed THEN host ELSE '' END, '', false,
    slot, slot + interval '5 s', CASE WHEN is_failed THEN signatures[1 + (id / 100 + ago) % 20] END
FROM wide, generate_series(1, 11) AS ago,
    (SELECT array_agg(id) AS signatures FROM monitor_failuresignature WHERE name LIKE 'cause-%') AS causes,
    LATERAL (SELECT date_trunc('minute', now()) - make_interval(hours => ago, mins => id::int % 60) AS slot,
        (id + ago * 7) % 100 = 1 AS is_failed) AS at
"""
QUERIES = {
    "all": "",
    "not passed": "?outcome=not_passed",
    "one cause": "?signature={signature}",
    "rare cause": "?signature={rare}",
    "one site": "?site=site-7",
    "one series": "?series=site-7-login-11",
    "part of names": "?series=login-7",
    "one hour of the day": "?from_time=03:00&to_time=03:59",
    "stage": "?stage=run",
    "90 days": "?range=90d",
}


def measure() -> list[Result]:
    _load()
    signatures = [FailureSignature.objects.create(**_signature(number)) for number in range(21)]
    with connection.cursor() as cursor:
        cursor.execute(_RUNS)
        cursor.execute("ANALYZE")
    reader = User.objects.create_user("bench-runs", is_superuser=True)
    client = Client()
    client.force_login(reader)
    failed = Run.objects.filter(state=State.FAILED, signature=signatures[0]).latest("slot")
    paths = {
        f"runs: {name}": "/runs/" + query.format(signature=signatures[0].name, rare=signatures[20].name)
        for name, query in QUERIES.items()
    }
    paths |= {"failed run": f"/runs/{failed.pk}/", "incidents": "/incidents/", "audit": "/audit/"}
    paths |= {"calendar": "/failures/calendar/"}
    with override_settings(ALLOWED_HOSTS=["*"]):
        figures = {f"{name}, ms": 1000 * _best(client, path) for name, path in paths.items()}
    worst = max(figures.values())
    return [
        Result(
            name="slowest page of runs of 100,000 series / 100 ms",
            ratio=worst / TARGET_MS,
            target=1.0,
            better="lower",
            figures=figures,
        )
    ]


def _load() -> None:
    """Create the series of the benchmark of the overview, each with a run in the last hour."""
    names = {"sites": overview.SITES, "series": overview.SERIES, "suites": overview.SUITES}
    statements = overview.LOAD.format(hours=1, one_in=overview.ONE_IN, **names)
    with connection.cursor() as cursor:
        cursor.execute("SELECT now() - interval '25 hours', now()")
        partitions.create_for(cursor.fetchone())
        cursor.execute(statements)


def _best(client: Client, path: str) -> float:
    assert client.get(path).status_code == 200, path
    return min(seconds(lambda: client.get(path)) for _ in range(TIMES))


def _signature(number: int) -> dict[str, object]:
    return {
        "name": f"cause-{number}",
        "title": f"Cause {number}",
        "category": "storage",
        "severity": "major",
        "counts_against_site": True,
    }
