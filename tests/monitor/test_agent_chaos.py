"""No record of an agent is lost, doubled or altered, whatever is killed and whatever the network does.

With 2 sites and 3 kills by default; ``make agents`` has 20 sites and 1,000 kills, in another order each time
(GRIDCAST_AGENT_SITES, GRIDCAST_AGENT_KILLS, GRIDCAST_AGENT_SEED).
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from monitor.core.compression import unpack
from monitor.core.env import ROOT
from monitor.operations.embedded.clean import clean
from reporters import report as wire
from tests.monitor.agents.feeder import report_of
from tests.monitor.agents.network import UnreliableNetwork
from tests.monitor.agents.site import AGENT, FEEDER, Site
from tests.monitor.kills.processes import KINDS, Web
from tests.waiting import eventually

SITES = int(os.environ.get("GRIDCAST_AGENT_SITES", "2"))
KILLS = int(os.environ.get("GRIDCAST_AGENT_KILLS", "3"))
SEED = int(os.environ.get("GRIDCAST_AGENT_SEED", "1"))
FAULTY_SHARE = 0.3  # of the requests
SERVER_SHARE = 0.15  # of the kills; the others are of agents and feeders
ROUND = 12  # kills of the server per supervisor, which waits longer before each restart of the same service
MOST_BETWEEN = 40  # reports confirmed between two kills
VICTIMS = sorted(KINDS.keys() - {"a backend of PostgreSQL"})  # often there is none: agents ask once a minute
HOUR_SECONDS = 3600.0
FULL_BYTES = 30_000
DELIVERED_WITHIN_SECONDS = 900.0


class AgentServer(Web):
    """gunicorn and PostgreSQL, with *sites* reporters to enrol."""

    def __init__(self, var: Path, sites: int, codes: Path) -> None:
        super().__init__(var, sites)
        self._sites, self._codes = sites, codes

    def _preparation(self) -> list[str]:
        module = "tests.monitor.agents.prepare"
        return [sys.executable, "-m", module, str(self._sites), str(self._codes)]

    def listens(self) -> bool:
        """Return whether the web server accepts connections."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10):
            return True
        return False

    def audit(self, reporter: str) -> str:
        """Return the output of ``ledger audit`` for *reporter*."""
        environment = {**os.environ, "DATABASE_URL": self.url, "GRIDCAST_VAR": str(self.var)}
        argv = [sys.executable, "manage.py", "ledger", "audit", "--reporter", reporter]
        done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


class Grid:
    """The sites, the network and the server, and what is done to them."""

    def __init__(self, server: AgentServer, sites: list[Site], chance: random.Random) -> None:
        self.server, self.sites, self._chance = server, sites, chance
        self.network = UnreliableNetwork(server.port, 0.0, SEED)

    def enrol(self, codes: Path) -> None:
        assert eventually(self.server.listens, within_seconds=300.0), self.server.log_tails()
        for site in self.sites:
            code = (codes / f"{site.name}.code").read_text(encoding="ascii")
            site.enrol(f"http://127.0.0.1:{self.network.port}", code)
            site.start(AGENT, FEEDER)

    def confirmed(self) -> int:
        return sum(len(site.numbers.of("confirmed")) for site in self.sites)

    def disturb(self) -> str:
        """Kill a process of a random site, change its conditions, and start the process again."""
        site = self._chance.choice(self.sites)
        kind = self._chance.choice([AGENT, FEEDER])
        site.conditions.set_clock(self._chance.choice([0.0, -HOUR_SECONDS, HOUR_SECONDS]))
        site.kill(kind)
        site.conditions.fill_disk(FULL_BYTES if self._chance.random() < 0.2 else None)
        site.start(kind)
        self.network.is_down = self._chance.random() < 0.2
        return f"the {kind} of {site.name}"

    def await_reports(self, more: int) -> None:
        """Wait until feeders have confirmed *more* further reports."""
        target = self.confirmed() + more
        for site in self.sites:
            site.start(AGENT, FEEDER)  # a full disk may have ended one
        assert eventually(lambda: self.confirmed() >= target, within_seconds=100.0), self.log_tails()

    def calm(self) -> None:
        """End all disturbances and the feeders; the agents go on, on disks with space."""
        self.network.share, self.network.is_down = 0.0, False
        for site in self.sites:
            site.conditions.fill_disk(None)
            site.conditions.set_clock(0.0)
            for kind in (FEEDER, AGENT):
                site.start(kind)
                site.kill(kind)
            site.start(AGENT)

    def undelivered(self) -> int:
        """Return how many confirmed reports the depot lacks."""
        try:
            with psycopg.connect(self.server.url, connect_timeout=10) as depot:
                stored = {run for (run,) in depot.execute("SELECT run_id FROM monitor_rawreport")}
        except psycopg.OperationalError:
            return self.confirmed()
        runs = (report_of(site.name, n).run for site in self.sites for n in site.numbers.of("confirmed"))
        return sum(run not in stored for run in runs)

    def log_tails(self) -> str:
        return "\n".join([*(site.log_tail() for site in self.sites), self.server.log_tails()])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentServer]:
    codes = tmp_path / "codes"
    codes.mkdir()
    yield AgentServer(tmp_path / "var", SITES, codes)
    clean(tmp_path / "var")


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[list[Site]]:
    sites = [Site(f"site-{number}", tmp_path / f"site-{number}") for number in range(SITES)]
    yield sites
    for site in sites:
        site.close()


@pytest.mark.chaos
@pytest.mark.nightly
def test_no_record_of_an_agent_is_lost_doubled_or_altered(
    server: AgentServer, sites: list[Site], tmp_path: Path
) -> None:
    chance, began = random.Random(SEED), time.monotonic()
    grid = Grid(server, sites, chance)
    kinds = [chance.random() < SERVER_SHARE for _ in range(KILLS)]
    kinds[:1] = [True]  # even a short run kills the server once
    with grid.network.running():
        while kinds:
            with server.running():
                if grid.network.share == 0.0:
                    grid.enrol(tmp_path / "codes")
                    grid.network.share = FAULTY_SHARE
                kills_of_server = 0
                while kinds and kills_of_server < ROUND:
                    grid.await_reports(chance.randint(1, MOST_BETWEEN))
                    kills_of_server += kinds[0]
                    if kinds.pop(0):
                        victim = chance.choice(VICTIMS)
                        server.kill(victim, chance)
                    else:
                        victim = grid.disturb()
                    print(f"{time.monotonic() - began:6.1f} s  {victim} was killed", flush=True)
                if not kinds:
                    settle(grid)
    faults = ", ".join(f"{kind} {count} times" for kind, count in sorted(grid.network.faults.items()))
    print(
        f"seed {SEED}: {KILLS} kills, {SITES} sites, {time.monotonic() - began:.0f} s; "
        f"{grid.confirmed()} reports, each stored once; {faults}"
    )


def settle(grid: Grid) -> None:
    """End the disturbances, wait until all is delivered, and check the depot."""
    grid.calm()
    is_done = eventually(lambda: not grid.undelivered(), within_seconds=DELIVERED_WITHIN_SECONDS)
    assert is_done, f"{grid.undelivered()} of {grid.confirmed()} reports are missing\n{grid.log_tails()}"
    for site in grid.sites:
        assert site.stop_agent() == 0, site.log_tail()
        audit = grid.server.audit(site.name)
        assert "0 missing, 0 doubled, 0 altered" in audit, f"{audit}\n{site.log_tail()}"
    with psycopg.connect(grid.server.url) as depot:
        rows = depot.execute("SELECT run_id, packing, packed FROM monitor_rawreport").fetchall()
        conflicts = depot.execute("SELECT run FROM monitor_conflictingreport").fetchall()
    bodies = {run: unpack(packing, bytes(packed)) for run, packing, packed in rows}
    assert conflicts == []
    for site in grid.sites:
        for number in site.numbers.of("confirmed"):
            report = report_of(site.name, number)
            assert bodies[report.run] == wire.to_json(report)
