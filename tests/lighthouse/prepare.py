"""Prepare the depot of ``DATABASE_URL`` for Lighthouse; print a session and the addresses of pages as JSON.

With the argument ``year``, load a year of hourly runs of a small grid first.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timedelta

import django
from django.test.utils import setup_test_environment

HOUR = timedelta(hours=1)
DAYS = 365

# The condition that mentions the slot makes PostgreSQL draw a number for each run.
_RUNS = """
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', state, '', 1,
    CASE state WHEN 'failed' THEN 'transfer_data' ELSE '' END,
    CASE state WHEN 'failed' THEN 'site2-login' ELSE '' END, '', false, slot, slot + interval '20 seconds'
FROM monitor_series, generate_series(%(start)s, %(end)s - interval '1 hour', interval '1 hour') AS slot,
    LATERAL (SELECT CASE WHEN random() < 0.02 AND slot IS NOT NULL THEN 'failed' ELSE 'passed' END AS state)
        AS what
"""
_SAMPLES = """
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT metric.id, run.slot, run.ended_at,
    2 + metric.id %% 7 + sin(extract(epoch FROM run.slot) / 13751) - ln(1 - random()), run.state = 'passed'
FROM monitor_run AS run
JOIN monitor_segment AS segment ON segment.series_id = run.series_id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE run.slot < %(end)s
ON CONFLICT DO NOTHING
"""  # the full depot has runs of weeks ago, with samples


def main() -> None:
    django.setup()
    setup_test_environment()  # its client may ask the pages
    if "year" in sys.argv:
        load_year()
    from django.contrib.auth.models import User

    from tests.monitor.web.pages import depots, test_screens

    user, _ = User.objects.get_or_create(username="lighthouse", is_superuser=True, is_staff=True)
    session = depots._session(user)
    addresses = test_screens.shown_pages(session)
    if "year" in sys.argv:
        addresses = [re.sub(r"range=\w+", "range=1y", address) for address in addresses]
    print(json.dumps({"session": session, "addresses": addresses}))


def load_year() -> None:
    """Load a year of runs and samples of every series of a full depot, and have the service's summaries made.

    These are rollups, causes, outcomes, latest results and availability.
    """
    from django.db import connection
    from django.utils import timezone

    from monitor.analysis.availability import refresh as availability
    from monitor.analysis.outcomes import worker as outcomes
    from monitor.analysis.signatures.classify_runs import classify_runs
    from monitor.core.db import partitions
    from monitor.depot.rollups.worker import rebuild
    from monitor.tasks import gather_dirty_hours
    from tests.monitor.web.pages import depots

    depots.full()
    end = timezone.now().replace(minute=0, second=0, microsecond=0) - HOUR
    start: datetime = end - DAYS * 24 * HOUR
    partitions.create_for(start + month * timedelta(days=28) for month in range(14))
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, {"start": start, "end": end})
        cursor.execute(_SAMPLES, {"end": end})
    for _ in rebuild(start, end):
        pass
    classify_runs(end)
    gather_dirty_hours()
    while outcomes.count(timezone.now()) or availability.refresh(timezone.now()):
        pass
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


main()
