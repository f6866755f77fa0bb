"""Agents of several sites in one process, for ``backlog.py``: real spools, signatures and deliveries.

Started as ``python -m tests.bench.backlog_agents NOW DAYS FRESH_EVERY_SECONDS DIRECTORY...`` with the state
directories of enrolled reporters. Prints the number of reports that it has spooled, waits for a line,
delivers them beside fresh reports, and prints what it did as JSON.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django

from reporters import report as wire
from reporters.remote import identity as identities
from reporters.remote.agent.delivery import LaneDeliveries
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import Notices
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway
from reporters.remote.server import ServerClient, parse_url
from reporters.remote.state_directory import StateDirectory
from reporters.remote.token import TokenSource
from reporters.spool.spool import Spool

SERIES = 50  # of a reporter
_ENOUGH = 5  # records that wait: fresh ones
_POLL_SECONDS = 0.5


class Agent:
    """The deliveries of one reporter. *waiting* is the number of its spooled records, as of ``check``."""

    def __init__(self, state: StateDirectory) -> None:
        me = identities.load(state)
        clock = SiteClock()
        notices = Notices(AgentLog(state.path / "agent.log"), clock.now, clock.steady)
        gateway = Gateway(me, ServerClient(parse_url(me.url)), TokenSource(me, state, clock), clock)
        self.name = me.reporter
        self.spool = Spool(state.spool, me.reporter, is_durable=False)
        self.lanes = LaneDeliveries(self.spool, gateway, me, notices, self._delivered)
        self.waiting, self._has_news = -1, True

    def check(self) -> None:
        if self._has_news:
            self._has_news = False
            self.waiting = self.spool.status().records

    def append(self, body: bytes) -> None:
        self.spool.append(body)
        self._has_news = True
        self.lanes.wake()

    def _delivered(self) -> None:
        self._has_news = True


def series_name(reporter: str, number: int) -> str:
    return f"circle-{reporter}-{number}"


def backlog_slots(now: datetime, days: int) -> list[tuple[int, datetime]]:
    """Return the number of the series and the slot of each report of a reporter's backlog, oldest first."""
    return [
        (number, now - timedelta(days=days - day, minutes=number))
        for day in range(days)
        for number in range(SERIES)
    ]


def report(name: str, number: int, slot: datetime) -> wire.Report:
    from tests.monitor.builders import circle_report  # needs Django

    ring = {"ring": (f"{name}-a", f"{name}-b")}
    made = circle_report(slot, series=series_name(name, number), reporter=name, bindings=ring)
    return replace(made, started_at=slot)


def fill(state: StateDirectory, name: str, now: datetime, days: int) -> int:
    """Spool the backlog of the reporter *name*, as a process that has ended; return the number of reports."""
    spool = Spool(state.spool, name, is_durable=False)
    slots = backlog_slots(now, days)
    for number, slot in slots:
        spool.append(wire.to_json(report(name, number, slot)))
    spool.close()
    return len(slots)


class FreshReports:
    """Appends a report to a random agent every *every_seconds*, and records when."""

    def __init__(self, agents: Sequence[Agent], every_seconds: float, now: datetime) -> None:
        self.appended: dict[str, float] = {}
        self._agents, self._every_seconds, self._now = agents, every_seconds, now
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._append)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _append(self) -> None:
        chance = random.Random(self._agents[0].name)
        while not self._end.wait(self._every_seconds):
            agent = chance.choice(self._agents)
            slot = self._now - timedelta(hours=1) + timedelta(milliseconds=len(self.appended))
            made = report(agent.name, len(self.appended) % SERIES, slot)
            self.appended[str(made.run)] = time.time()
            agent.append(wire.to_json(made))


def drain(agents: Sequence[Agent], fresh: FreshReports) -> float:
    """Deliver everything; return the seconds until the backlog was delivered."""
    threads = [threading.Thread(target=agent.lanes.serve) for agent in agents]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    fresh.start()
    _await(agents, _ENOUGH)
    drained_seconds = time.monotonic() - began
    fresh.stop()
    _await(agents, 0)
    for agent in agents:
        agent.lanes.stop()
    for thread in threads:
        thread.join()
    return drained_seconds


def _await(agents: Sequence[Agent], most_waiting: int) -> None:
    while any(agent.waiting < 0 or agent.waiting > most_waiting for agent in agents):
        time.sleep(_POLL_SECONDS)
        for agent in agents:
            agent.check()


def cpu_seconds() -> float:
    """Return the processor time of this process and of the programs that it ran."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(now_text: str, days: str, fresh_every_seconds: str, *directories: str) -> None:
    django.setup()
    now = datetime.fromisoformat(now_text).astimezone(UTC)
    states = [StateDirectory(Path(directory)) for directory in directories]
    filled = sum(fill(state, identities.load(state).reporter, now, int(days)) for state in states)
    agents = [Agent(state) for state in states]
    fresh = FreshReports(agents, float(fresh_every_seconds), now)
    gc.collect()
    sys.stdout.write(f"{filled}\n")
    sys.stdout.flush()
    sys.stdin.readline()
    used = cpu_seconds()
    drained_seconds = drain(agents, fresh)
    done = {
        "drained_seconds": drained_seconds,
        "cpu_seconds": cpu_seconds() - used,
        "appended": fresh.appended,
    }
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
