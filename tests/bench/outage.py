"""Ticks after an outage, with hundreds of thousands of overdue runs of agents, against few overdue runs.

GRIDCAST_BENCH_DUE sets the number of overdue runs (200,000).
"""

from __future__ import annotations

import os
import statistics
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from monitor.core.db import partitions
from monitor.models import Heartbeat, Reporter, ReporterStatus, Run, Series, Site
from monitor.models.run import State
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ledger import agent_runs
from monitor.tick import tick
from reporters.config import ResourceConfig
from tests.bench.base import Result, seconds

DUE = int(os.environ.get("GRIDCAST_BENCH_DUE", "200000"))
REPORTERS, SERIES = 50, 10
FEW = agent_runs.MAX_REAPED
_TICK = timedelta(seconds=2)
_EXPECT = """
INSERT INTO monitor_run
    (id, series_id, slot, due_at, trigger, forced, state, reason, cause, attempt, stage, failed_resource)
SELECT gen_random_uuid(), series.id, slot, slot, 'schedule', false, 'expected', '', '', 0, '', ''
FROM monitor_series AS series, LATERAL (
    SELECT %s::timestamptz - number * interval '1 minute' - series.id * interval '1 millisecond' AS slot
    FROM generate_series(1, %s) AS number
) AS slots
"""


def measure() -> list[Result]:
    now = timezone.now()
    _define_agents(now)
    tick(now)
    Heartbeat.objects.update(back_at=None)
    _expect(now - agent_runs.DELIVERY, FEW)
    few_seconds = seconds(lambda: tick(now + _TICK))
    if _overdue(now):
        raise AssertionError("one tick did not end the few overdue runs")
    _expect(now - agent_runs.DELIVERY - timedelta(hours=1), DUE)
    Heartbeat.objects.update(seen_at=now - agent_runs.DELIVERY)
    first_seconds = seconds(lambda: tick(now))  # it ends nothing: agents have time to deliver
    if _overdue(now) < DUE:
        raise AssertionError("the first tick has ended runs whose reports may be on their way")
    later = now + agent_runs.DELIVERY
    Heartbeat.objects.update(seen_at=later)
    ticks: list[float] = []
    while _overdue(now):
        ticks.append(seconds(lambda: tick(later + len(ticks) * _TICK)))
    return [
        Result(
            name=f"a tick that ends {FEW:,} of many overdue runs / of few",
            ratio=statistics.median(ticks) / few_seconds,
            target=2.0,
            better="lower",
            figures={
                "overdue": DUE,
                "ticks": len(ticks),
                "median, s": statistics.median(ticks),
                "longest, s": max(ticks),
                "all, s": sum(ticks),
                "the first tick after the outage, s": first_seconds,
                "of few, s": few_seconds,
            },
        )
    ]


def _define_agents(now: datetime) -> None:
    names = [f"site-{number}" for number in range(REPORTERS)]
    for name in names:
        reporter = Reporter.objects.create(name=name, site=Site.objects.create(name=name))
        seen = {"seen_at": now, "started_at": now, "hostname": name}
        ReporterStatus.objects.create(reporter=reporter, **seen)
    define(
        [ResourceConfig(name, name, f"/{name}") for name in names],
        [
            SeriesDefinition(f"disk-{name}-{number}", "disk", {"target": [name]}, reporter=name)
            for name in names
            for number in range(SERIES)
        ],
    )


def _expect(before: datetime, runs: int) -> None:
    """Put overdue runs of every minute before *before* into the ledger."""
    each = runs // Series.objects.count()
    partitions.create_for([before - minute * timedelta(minutes=1) for minute in range(each + 1)])
    with connection.cursor() as cursor:
        cursor.execute(_EXPECT, [before, each])
        cursor.execute("ANALYZE monitor_run")


def _overdue(now: datetime) -> int:
    return Run.objects.filter(state=State.EXPECTED, due_at__lte=now).count()
