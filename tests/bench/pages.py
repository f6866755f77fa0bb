"""Every page at 500 sites with 200 series each, as administrator, viewer and site admin, against 100 ms.

The pages come from the registry; ``QUERIES`` adds their filters. Measured is the processor time of this
process and of its PostgreSQL backend, which does not depend on what else the machine does.
``BENCH_PAGES`` in the environment, a regular expression, chooses addresses, as in
``BENCH_PAGES='^/sites/' make bench ARGS=pages``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from monitor.models import Alert, Incident, Run
from monitor.models.run import State
from monitor.web import pages
from monitor.web.status import standings
from tests.bench import wide_grid
from tests.bench.base import Result

ROUNDS = 5
TARGET_MS = 100.0
BARE = "/help/"  # reads nothing of the grid
# Query strings by route, beside none at all.
QUERIES: Mapping[str, tuple[str, ...]] = {
    "": ("text=login-7", "site=site-7", "suite=suite-3", "probe=login", "category=transfer", "order=name"),
    "alerts/": ("page=9",),
    "audit/": ("user=user-7", "outcome=denied", "page=40", "q=holds"),
    "availability/": ("month=2026-10", "page=2"),
    "compare/": ("series=site-7-login-11&with=site-8-login-11",),
    "failures/": ("site=site-7", "range=90d", "signature=cause-1"),
    "failures/breakdown/": (
        "by=series&range=7d", "by=series&range=90d", "by=site&range=7d", "by=path&range=7d", "by=stage",
        "site=site-7",
    ),
    "failures/calendar/": ("range=90d", "site=site-7"),
    "failures/causes/<slug:name>/": ("range=90d",),
    "failures/signatures/": ("q=cause",),
    "forecasts/accuracy/": ("site=site-7", "suite=suite-3", "range=7d", "by=site", "by=series"),
    "forecasts/rank/": ("application=login&paths=target%3Dhost-of-site-7",),
    "runs/": (
        "site=site-7", "series=site-7-login-11", "series=login-7", "outcome=not_passed",
        "outcome=in_progress", "stage=run", "stage=nothing", "signature=cause-1", "range=90d",
        "range=90d&stage=init", "from_time=03:00&to_time=03:59",
    ),
    "schedule/": ("text=site-7", "view=last", "page=2"),
    "search/": ("q=site-7", "q=login-7", "q=cause", "q=e&all=1"),
    "series/": ("q=login-7", "site=site-7", "suite=suite-3", "state=failing", "order=name", "page=900"),
    "series/<slug:name>/": ("range=30d", "range=all"),
    "series/<slug:name>/runs/": ("outcome=failed",),
    "settings/series/": ("q=login-7", "suite=suite-3", "after=site-463"),
    "settings/ping-keys/": ("q=login-7",),
    "sites/": ("q=site-7", "state=failing", "state=held", "state=maintenance", "order=name", "page=9"),
}  # fmt: skip


class Cost(NamedTuple):
    """The milliseconds of processor time and of the clock that a request takes at least.

    *first* is what the first one took by the clock: some results are kept for minutes.
    """

    processor: float
    clock: float
    first: float


def measure() -> list[Result]:
    users = wide_grid.load()
    with connection.cursor() as cursor:  # the time of parallel workers would not count
        cursor.execute("SET max_parallel_workers_per_gather = 0")
    results = []
    chosen = [BARE, *filter(re.compile(os.environ.get("BENCH_PAGES", "")).search, addresses())]
    with override_settings(ALLOWED_HOSTS=["*"]):
        for kind, user in users.items():
            client = Client()
            client.force_login(user)
            costs = {address: cost for address in chosen if (cost := _cost_in_service(client, address))}
            results.append(_result(kind, costs))
    return results


def _result(kind: str, costs: Mapping[str, Cost]) -> Result:
    slowest = max(costs, key=lambda address: costs[address].processor)
    figures = {f"{address}, ms": cost.processor for address, cost in costs.items()}
    figures["slowest page / bare page"] = costs[slowest].processor / costs[BARE].processor
    figures["slowest page by the clock, ms"] = max(cost.clock for cost in costs.values())
    figures["slowest first request by the clock, ms"] = max(cost.first for cost in costs.values())
    return Result(
        name=f"slowest page of 100,000 series, {kind} / 100 ms",
        ratio=costs[slowest].processor / TARGET_MS,
        target=1.0,
        better="lower",
        figures=figures,
    )


def addresses() -> Iterator[str]:
    """Yield the address of each page, alone and with its ``QUERIES``; of objects, the page of one."""
    known = arguments()
    for pattern in (each for patterns in pages.load_all().values() for each in patterns):
        route = str(pattern.pattern)
        filled = route
        for part in sorted(known, key=len, reverse=True):
            filled = filled.replace(part, re.sub(r"<.*", "", part) + str(known[part]))
        if "<" not in filled and (not filled or filled.endswith("/")):  # others are downloads
            yield f"/{filled}"
            yield from (f"/{filled}?{query}" for query in QUERIES.get(route, ()))


def arguments() -> Mapping[str, object]:
    """Return an object by the part of a route that has an argument."""
    failed = Run.objects.filter(state=State.FAILED, series__name__contains="-login-").latest("slot")
    incident, site = Incident.objects.open().order_by("pk").last(), wide_grid.OWN_SITE
    return {
        "runs/<uuid:pk>": failed.pk,
        "series/<slug:name>": "site-7-login-11",
        "settings/series/edit/<slug:name>": "site-7-login-11",
        "settings/series/retire/<slug:name>": "site-7-login-11",
        "settings/ping-keys/<slug:name>": "site-7-login-11",
        "settings/suites/edit/<slug:name>": "suite-3",
        "settings/suites/delete/<slug:name>": "suite-3",
        "settings/alerts/edit/<slug:name>": "rule-7",
        "settings/alerts/delete/<slug:name>": "rule-7",
        "incidents/<int:pk>": incident and incident.pk,
        "alerts/<int:pk>": Alert.objects.latest("pk").pk,
        "reporters/<slug:name>": "agent-20",
        "reports/<slug:period>": f"{timezone.now():%Y-%m}",
        "sites/<slug:name>": site,
        "availability/sites/<slug:name>": site,
        "sites/<slug:site>/resources/<slug:name>": f"{site}/resources/host-of-{site}",
        "failures/causes/<slug:name>": "cause-1",
        "holds/<slug:kind>/<slug:name>": f"site/{site}",
        "help/api/<slug:operation>": "rank_forecasts",
        "help/guides/<slug:guide>": "pages",
    }


def _cost_in_service(client: Client, address: str) -> Cost | None:
    """Return ``cost_of``; results become stale meanwhile, which the service counts every two seconds."""
    standings.recount_due(timezone.now())
    return cost_of(client, address)


def cost_of(client: Client, address: str, rounds: int = ROUNDS) -> Cost | None:
    """Return what the page at *address* costs, warm; None if it does not answer with a page."""
    began = time.perf_counter()
    if client.get(address).status_code != 200:
        return None
    first = 1000 * (time.perf_counter() - began)
    costs = [_once(client, address) for _ in range(rounds)]
    return Cost(min(each for each, _ in costs), min(each for _, each in costs), first)


def _once(client: Client, address: str) -> tuple[float, float]:
    """Return the milliseconds of processor time and of the clock that a request takes."""
    began = time.perf_counter()
    used = processor_milliseconds(lambda: client.get(address))
    return used, 1000 * (time.perf_counter() - began)


def processor_milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time that *work* takes in this process and in its PostgreSQL backend."""
    with connection.cursor() as cursor:
        backend = cursor.connection.info.backend_pid
    used = time.process_time() + _seconds_of(backend)
    work()
    return 1000 * (time.process_time() + _seconds_of(backend) - used)


def _seconds_of(process: int) -> float:
    """Return the processor time of another *process* in seconds."""
    schedule = Path(f"/proc/{process}/schedstat")
    if schedule.exists():
        return int(schedule.read_text(encoding="ascii").split()[0]) / 1e9
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
