"""Agents deliver the backlog of a week beside fresh reports, against one agent that does so alone.

Time is injected: the backlog has a report a day of each series. GRIDCAST_BENCH_REPORTERS sets the number of
agents (50). Agents and server share the machine; every agent has its own spool, key and threads.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from django.utils import timezone

from monitor.fleet import signatures
from monitor.gridfile.define import SeriesDefinition, define
from monitor.models import ChainRecord, Reporter, ReporterKey, Site
from reporters import report as wire
from reporters.config import ResourceConfig
from reporters.remote import signing
from reporters.remote.agent.delivery import Delivery, LaneDeliveries
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import Notices
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway
from reporters.remote.server import ServerClient, parse_url
from reporters.remote.state_directory import StateDirectory
from reporters.remote.token import TokenSource
from reporters.spool.spool import Spool
from tests.bench import web
from tests.bench.base import Result, seconds
from tests.monitor.builders import circle_report
from tests.reporters.remote.assignments import enrolled
from tests.waiting import eventually

REPORTERS = int(os.environ.get("GRIDCAST_BENCH_REPORTERS", "50"))
SERIES, DAYS = 50, 7
FRESH_EVERY_SECONDS = 0.05  # a report of any agent: 20 a second, as of 500 agents with hourly series
MOST_LAG_SECONDS = 60.0
WITHIN_SECONDS = 1800.0
_NOW = datetime.now(UTC).replace(second=0, microsecond=0)


@dataclass
class Agent:
    """An agent's spool, and what delivers it: in two lanes, or in one."""

    name: str
    spool: Spool
    lanes: LaneDeliveries
    alone: Delivery


class FreshReports:
    """Appends fresh reports to random agents, and measures how long each waits for its receipt."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self._spools: dict[str, Spool] = {}
        self._appended: dict[str, dict[uuid.UUID, float]] = defaultdict(dict)
        self._changing = threading.Lock()
        self._end = threading.Event()

    @contextmanager
    def arriving(self, agents: Sequence[Agent]) -> Iterator[None]:
        self._spools = {agent.name: agent.spool for agent in agents}
        thread = threading.Thread(target=self._append, args=(agents,))
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def delivered(self, name: str) -> None:
        """Note the lag of the reports of the agent *name* that have left its spool."""
        with self._changing:
            appended = self._appended[name]
            waiting = self._spools[name].pending_runs(list(appended)) if appended else set()
            for run in [run for run in appended if run not in waiting]:
                self.lags.append(time.monotonic() - appended.pop(run))

    @property
    def waiting(self) -> int:
        with self._changing:
            return sum(map(len, self._appended.values()))

    def _append(self, agents: Sequence[Agent]) -> None:
        chance = random.Random(1)
        number = 0
        while not self._end.wait(FRESH_EVERY_SECONDS):
            agent = chance.choice(agents)
            slot = _NOW - timedelta(hours=1) + timedelta(milliseconds=number)
            report = _report(agent.name, number % SERIES, slot)
            number += 1
            with self._changing:
                agent.spool.append(wire.to_json(report))
                self._appended[agent.name][report.run] = time.monotonic()
            agent.lanes.wake()


def measure() -> list[Result]:
    names = [f"site-{number}" for number in range(REPORTERS)]
    _define([*names, "reference"])
    with tempfile.TemporaryDirectory() as directory, web.serving("monitor.wsgi") as (host, port):
        url = f"http://{host}:{port}"
        fresh = FreshReports()
        reference, *agents = (
            _agent(name, Path(directory), url, partial(fresh.delivered, name))
            for name in ["reference", *names]
        )
        sent = _fill(reference, days=40)
        alone_seconds = seconds(lambda: _deliver_alone(reference)) / sent
        waiting = sum(_fill(agent, DAYS) for agent in agents)
        drained_seconds = seconds(lambda: _drain(agents, fresh))
    stored = ChainRecord.objects.filter(kind="report").count()
    if stored != sent + waiting + len(fresh.lags):
        raise AssertionError(f"{stored} of {sent + waiting + len(fresh.lags)} reports arrived")
    rate, lag = (waiting + len(fresh.lags)) / drained_seconds, max(fresh.lags)
    return [
        Result(
            name="reports/s: backlogs of a week / one agent alone",
            ratio=rate * alone_seconds,
            target=0.8,
            better="higher",
            figures={"backlog, reports/s": rate, "alone, reports/s": 1 / alone_seconds, "agents": REPORTERS},
        ),
        Result(
            name="longest lag of a fresh report beside the backlog / a minute",
            ratio=lag / MOST_LAG_SECONDS,
            target=1.0,
            better="lower",
            figures={
                "longest, s": lag,
                "median, s": sorted(fresh.lags)[len(fresh.lags) // 2],
                "fresh reports": len(fresh.lags),
                "drained in, s": drained_seconds,
            },
        ),
    ]


def _define(names: Sequence[str]) -> None:
    for name in names:
        Reporter.objects.create(name=name, site=Site.objects.create(name=name))
    define(
        [ResourceConfig(f"{name}-{end}", name, f"/{name}") for name in names for end in ("a", "b")],
        [
            SeriesDefinition(_series(name, number), "circle", {"ring": list(_ring(name))}, reporter=name)
            for name in names
            for number in range(SERIES)
        ],
    )


def _series(name: str, number: int) -> str:
    return f"circle-{name}-{number}"


def _ring(name: str) -> tuple[str, str]:
    return f"{name}-a", f"{name}-b"


def _report(name: str, number: int, slot: datetime) -> wire.Report:
    report = circle_report(slot, series=_series(name, number), reporter=name, bindings={"ring": _ring(name)})
    return replace(report, started_at=slot)


def _agent(name: str, directory: Path, url: str, delivered: Callable[[], None]) -> Agent:
    state = StateDirectory.create(directory / name)
    me = replace(enrolled(state, url=url), reporter=name)
    public_key = signing.load(me.method).public_key(state.path / me.key_file)
    key = signatures.parse_key(me.method, public_key)
    ReporterKey.objects.create(
        reporter=Reporter.objects.get(name=name),
        method=key.method,
        public_key=key.text,
        fingerprint=key.fingerprint,
        enrolled_at=timezone.now(),
    )
    clock = SiteClock()
    notices = Notices(AgentLog(state.path / "agent.log"), clock.now, clock.steady)
    gateway = Gateway(me, ServerClient(parse_url(url)), TokenSource(me, state, clock), clock)
    spool = Spool(state.spool, name, is_durable=False)
    arguments = (spool, gateway, me, notices, delivered)
    return Agent(name, spool, LaneDeliveries(*arguments), Delivery(*arguments))


def _fill(agent: Agent, days: int) -> int:
    """Fill the spool of *agent* with a report a day of each series; return their number."""
    for day in range(days):
        for number in range(SERIES):
            slot = _NOW - timedelta(days=days - day, minutes=number)
            agent.spool.append(wire.to_json(_report(agent.name, number, slot)))
    return days * SERIES


def _deliver_alone(agent: Agent) -> None:
    if agent.alone.deliver() is not None or not agent.spool.is_empty():
        raise AssertionError("the server did not accept the reports of one agent")


def _drain(agents: Sequence[Agent], fresh: FreshReports) -> None:
    threads = [threading.Thread(target=agent.lanes.serve) for agent in agents]
    with fresh.arriving(agents):
        for thread in threads:
            thread.start()
        if not eventually(
            lambda: all(_has_no_backlog(agent) for agent in agents), within_seconds=WITHIN_SECONDS
        ):
            raise AssertionError("the backlog is still there")
    if not eventually(lambda: not fresh.waiting, within_seconds=MOST_LAG_SECONDS * 2):
        raise AssertionError("fresh reports are still there")
    for agent in agents:
        agent.lanes.stop()
    for thread in threads:
        thread.join()


def _has_no_backlog(agent: Agent) -> bool:
    return agent.spool.status().records < SERIES
