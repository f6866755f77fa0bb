"""The archive's agent against bare Python: start, memory and CPU time at rest, a run outside its probe.

A real HTTPS server of the tests, and 50 series. A reference is measured in turn with its value, so that the
load of the machine affects both; CPU time and memory depend little on the load.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import select
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from monitor.testbed.middleware.pki import Authority
from reporters.fields import parse_time
from reporters.remote import archive, identity
from reporters.remote.state_directory import STATUS, StateDirectory
from reporters.report import rfc3339, run_id
from tests.bench.base import Result, interleaved, seconds
from tests.reporters.remote.agent_process import agent_process
from tests.reporters.remote.assignments import assignment, enrolled, series
from tests.reporters.remote.grid_server import GridServer, grid_server
from tests.waiting import eventually

SERIES = 50
NAME = "noop-ncsa"
EXCHANGE_SECONDS = 60
STARTS = 9
WARM_UPS, RUNS = 5, 30
_REST_SECONDS = 180.0  # the process that starts runs ends itself two minutes after the last run
_IMPORTS = "import argparse, json, ssl, http.client, threading, subprocess"
# The promises are 300 ms, 25 MB and 30 ms; on an idle core, bare Python with these modules takes 45 ms and
# 18.7 MB, and without any 15 ms.
_BARE = [sys.executable, "-I", "-c"]


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-agent-") as directory, _place(Path(directory)) as place:
        first_seconds = _start(place)
        results = [_first_exchange(place, first_seconds), _first_command(place)]
        with agent_process(place.state, place.pyz) as agent:
            results.append(_overhead(place))
            results += _at_rest(place, agent.process.pid)
        return results


@dataclass
class AgentPlace:
    """An enrolled state directory, the archive, and the server, which sets *exchanged* and *delivered*."""

    state: Path
    pyz: Path
    authority: Authority
    server: GridServer
    exchanged: threading.Event = field(default_factory=threading.Event)
    delivered: threading.Event = field(default_factory=threading.Event)
    answered_at: float = 0.0

    def await_exchange(self) -> None:
        """Return after the exchange; the next call waits for the next one."""
        if not self.exchanged.wait(2 * EXCHANGE_SECONDS):
            raise RuntimeError(f"no exchange: {(self.state / 'agent.log').read_text()}")
        self.exchanged.clear()

    def await_status(self) -> None:
        """Return when the agent has written its status after the exchange: it rests until the next one."""
        self.await_exchange()
        if not eventually(lambda: self._has_status_since(self.answered_at)):
            raise RuntimeError(f"no status: {(self.state / 'agent.log').read_text()}")

    def _has_status_since(self, at: float) -> bool:
        exchanged_at = json.loads((self.state / STATUS).read_bytes())["exchanged_at"]
        return exchanged_at is not None and parse_time(exchanged_at).timestamp() >= at


@contextmanager
def _place(directory: Path) -> Iterator[AgentPlace]:
    pyz, state = directory / "gridcast-reporter.pyz", StateDirectory.create(directory / "state")
    archive.write(pyz, archive.build())
    authority = Authority.create(directory / "ca")
    far = (datetime.now(UTC).minute + 40) % 60  # none is due while the agent rests
    hourly = [series(f"noop-{number}", schedule=f"{far} * * * *") for number in range(SERIES - 1)]
    assigned = assignment(series(NAME, schedule=""), *hourly, capacity=1)  # one run after the other
    with grid_server(authority, GridServer(assignment=assigned)) as server:
        ca_file = str(authority.identity.certificate)
        identity.save(state, enrolled(state, url=server.url, ca_file=ca_file))
        place = AgentPlace(state.path, pyz, authority, server)

        def answer(document: dict[str, Any]) -> None:
            document["exchange_seconds"] = EXCHANGE_SECONDS
            place.answered_at = time.time()
            place.exchanged.set()

        server.change = answer
        server.change_receipt = lambda _: place.delivered.set()
        yield place


def _start(place: AgentPlace) -> float:
    """Start the agent, wait for its first exchange and kill it; return the seconds of the first two."""
    began = time.perf_counter()
    with agent_process(place.state, place.pyz):
        place.await_exchange()
        return time.perf_counter() - began


def _first_exchange(place: AgentPlace, first_seconds: float) -> Result:
    pairs = [(_start(place), seconds(lambda: _call(*_BARE, _IMPORTS))) for _ in range(STARTS)]
    ours, bare = (statistics.median(each) for each in zip(*pairs, strict=True))
    figures = {
        "agent, ms": ours * 1000,
        "the first start of a version, ms": first_seconds * 1000,
        "bare, ms": bare * 1000,
    }
    return Result("agent: start to first exchange / bare Python", ours / bare, 6.5, "lower", figures)


def _first_command(place: AgentPlace) -> Result:
    command = [sys.executable, "-I", str(place.pyz), "status", "--state", str(place.state)]
    ours, bare = interleaved(
        lambda: subprocess.run(command, check=False, capture_output=True),  # status 3: no agent runs
        lambda: _call(*_BARE, _IMPORTS),
        STARTS,
    )
    figures = {"status, ms": ours * 1000, "bare, ms": bare * 1000}
    return Result("agent: command status / bare Python", ours / bare, 3.0, "lower", figures)


def _overhead(place: AgentPlace) -> Result:
    """The time between two runs that are due at once, one after the other: report, spool, decision and fork.

    A run's own ``seconds`` are not part of it.
    """
    _ask(place, WARM_UPS + RUNS)
    place.await_exchange()
    asked_at = place.answered_at
    while len(place.server.reports) < WARM_UPS + RUNS:
        place.delivered.wait(EXCHANGE_SECONDS)
        place.delivered.clear()
    reports = sorted(place.server.reports, key=lambda report: report.started_at)
    cycles = [
        (after.started_at - before.started_at).total_seconds() - before.seconds
        for before, after in itertools.pairwise(reports)
    ]
    ours = statistics.median(cycles[WARM_UPS:])
    bare = statistics.median(seconds(lambda: _call(*_BARE, "pass")) for _ in range(RUNS))
    figures = {
        "agent, ms": ours * 1000,
        "until the first run after a rest, ms": (reports[0].started_at.timestamp() - asked_at) * 1000,
        "the run itself, ms": statistics.median(report.seconds for report in reports[WARM_UPS:]) * 1000,
        "bare, ms": bare * 1000,
    }
    return Result("agent: a run outside its probe / python -c pass", ours / bare, 1.5, "lower", figures)


def _ask(place: AgentPlace, runs: int) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    slots = [now - timedelta(minutes=number) for number in range(runs)]
    expires_at = rfc3339(now + timedelta(minutes=10))
    place.server.requests[:] = [
        {"run": str(run_id(NAME, slot)), "series": NAME, "slot": rfc3339(slot), "expires_at": expires_at}
        for slot in slots
    ]


def _at_rest(place: AgentPlace, pid: int) -> list[Result]:
    """Memory and CPU time of the agent after its runs, from an exchange to the next one."""
    place.server.requests.clear()
    starter = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    starter_bytes = _memory(starter)["Rss"]
    with open(os.pidfd_open(starter)) as handle:  # noqa: PTH123
        if not select.select([handle], [], [], _REST_SECONDS)[0]:
            raise RuntimeError("the process that starts runs did not end")
    place.exchanged.clear()
    place.await_status()
    began, used = time.monotonic(), _cpu_seconds(pid)
    place.await_status()
    share = (_cpu_seconds(pid) - used) / (time.monotonic() - began)
    return [_memory_at_rest(pid, starter_bytes), _cpu_at_rest(place, share)]


def _memory_at_rest(pid: int, starter_bytes: int) -> Result:
    ours = _memory(pid)
    with subprocess.Popen([*_BARE, f"{_IMPORTS}; print(flush=True); input()"], stdin=-1, stdout=-1) as asleep:
        assert asleep.stdout is not None
        asleep.stdout.readline()
        bare = _memory(asleep.pid)
        asleep.kill()
    figures = {
        "RSS, MB": ours["Rss"] / 1e6,
        "PSS, MB": ours["Pss"] / 1e6,
        "RSS of the process that starts runs, MB": starter_bytes / 1e6,
        "bare RSS, MB": bare["Rss"] / 1e6,
        "bare PSS, MB": bare["Pss"] / 1e6,
    }
    return Result("agent: RSS at rest / bare Python", ours["Rss"] / bare["Rss"], 1.34, "lower", figures)


def _cpu_at_rest(place: AgentPlace, share: float) -> Result:
    request_seconds = statistics.median(_bare_request(place) for _ in range(STARTS))
    bare = request_seconds / EXCHANGE_SECONDS
    figures = {"CPU, %": share * 100, "a bare TLS request, CPU ms": request_seconds * 1000}
    return Result("agent: CPU at rest / a TLS request a minute", share / bare, 10.0, "lower", figures)


def _bare_request(place: AgentPlace) -> float:
    """Return the seconds of CPU time of an exchange by ``http.client``, as of a program without any state."""
    body = json.dumps(place.server.exchanges[-1]).encode()
    began = time.thread_time()
    context = ssl.create_default_context(cafile=str(place.authority.identity.certificate))
    connection = http.client.HTTPSConnection("localhost", place.server.port, context=context)
    connection.request("POST", "/api/v1/reporters/ncsa/exchange", body)
    connection.getresponse().read()
    connection.close()
    return time.thread_time() - began


def _memory(pid: int) -> dict[str, int]:
    """Return the bytes of each kind of memory of the process *pid*."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of the process *pid*, and of its ended children in ticks."""
    own = time.clock_gettime((~pid << 3) | 2)  # as of clock_getcpuclockid(3)
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return own + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def _call(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
