"""Programs that report ends of runs in every way, and repeat each until it is acknowledged."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.core.env import ROOT
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
from tests.monitor.agents.feeder import report_of
from tests.monitor.agents.site import Site
from tests.monitor.ends.prepare import AGENTS, OUTSIDE, REQUESTED
from tests.monitor.ends.processes import Installation
from tests.waiting import eventually

ANSWER_SECONDS = 20.0
RECEIPT_SECONDS = 300.0
PAUSE_SECONDS = 0.1  # after no answer, or 503
PINGERS, BATCHES = 8, 3  # threads
MOST_IN_A_BATCH = 100
OUTCOMES = ("passed", "failed", "broken", "timed_out")


@dataclass
class Acknowledged:
    """What the senders were told is stored.

    Attributes:
        outside: the outcome of each run that a program outside has reported, by its series and its id.
        runs: the run that the answer to a ping named, by series and id.
        agents: the number of reports of each agent; those from 0 on are confirmed by its spool.
        imported: the number of rows of each imported series.
        requested: the runs that were requested.
        answers: the number of answers by status; 0 stands for no answer.
        errors: answers that must not occur, whatever is killed.
    """

    outside: dict[tuple[str, str], str] = field(default_factory=dict)
    runs: dict[tuple[str, str], uuid.UUID] = field(default_factory=dict)
    agents: Counter[str] = field(default_factory=Counter)
    imported: dict[str, int] = field(default_factory=dict)
    requested: set[uuid.UUID] = field(default_factory=set)
    answers: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        counts = (len(self.outside), self.agents.total(), sum(self.imported.values()), len(self.requested))
        return sum(counts)


class _Stopped(Exception):
    """Another sender has got an answer that must not occur."""


class Senders:
    """Threads that report *ends* ends in all ways at the same time, drawn by *seed*.

    Three in ten are imported, as many come in reports of many runs, two of agents, the others are pings, and
    one in a hundred is the end of a requested run.
    """

    def __init__(self, installation: Installation, ends: int, seed: int, directory: Path) -> None:
        self.done = Acknowledged()
        self._installation, self._secrets, self._seed = installation, installation.secrets, seed
        self._directory = directory
        self._lock = threading.Lock()
        self._import: subprocess.Popen[bytes] | None = None
        for name in AGENTS:  # before anything is killed: an administrator does it, who sees that it fails
            site = Site(name, directory / name)
            site.enrol(installation.address, self._secrets[name])
            site.close()
        requested = max(ends // 100, 3)
        imported, batched, of_agents = ends * 3 // 10, ends * 3 // 10, ends * 2 // 10
        pings = ends - requested - imported - batched - of_agents
        self._work: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
            *((self._ping, (number, share)) for number, share in enumerate(shares(pings, PINGERS))),
            *((self._send_batches, (number, share)) for number, share in enumerate(shares(batched, BATCHES))),
            *((self._run_agent, each) for each in zip(AGENTS, shares(of_agents, len(AGENTS)), strict=True)),
            (self._import_files, (imported,)),
            (self._request_runs, (requested,)),
        ]

    @contextmanager
    def sending(self) -> Iterator[Callable[[], bool]]:
        """Send in the block, which gets a function that says whether all has been sent; wait for the rest."""
        threads = [
            threading.Thread(target=self._until_error, args=(work, arguments))
            for work, arguments in self._work
        ]
        for thread in threads:
            thread.start()
        try:
            yield lambda: not any(thread.is_alive() for thread in threads)
        except BaseException as error:
            self.done.errors.append(f"the test has ended: {error!r:.200}")  # ends the threads
            raise
        finally:
            for thread in threads:
                thread.join()

    def _until_error(self, work: Callable[..., None], arguments: Sequence[Any]) -> None:
        try:
            work(*arguments)
        except _Stopped:
            pass
        except Exception as error:  # noqa: BLE001  # the test shows it
            self.done.errors.append(f"{work.__name__}: {error!r:.1000}")

    def kill_the_import(self) -> bool:
        """Send SIGKILL to the import that runs; return whether there was one."""
        process = self._import
        if process is not None and process.poll() is None:
            process.kill()
            return True
        return False

    def _ping(self, number: int, ends: int) -> None:
        """Report *ends* runs by pings, the first of some with a ping at the start."""
        chance = random.Random(f"{self._seed}-ping-{number}")
        for end in range(ends):
            series, rid = chance.choice([*OUTSIDE]), f"ping-{number}-{end}"
            signal = chance.choice(["0", "fail", "3", "0"])
            path = f"/api/v1/ping/{self._secrets[series]}"
            started = ""
            if chance.random() < 0.2:
                started = self._acknowledged("GET", f"{path}/start?rid={rid}")["run"]
            answer = self._acknowledged("POST", f"{path}/{signal}?rid={rid}", b"the output\n", "text/plain")
            expected = "passed" if signal == "0" else "failed"
            if answer["state"] != expected or started not in ("", answer["run"]):
                self.done.errors.append(f"{rid}: expected {expected} of {started or 'a run'}, got {answer}")
            with self._lock:
                self.done.outside[series, rid] = expected
                self.done.runs[series, rid] = uuid.UUID(answer["run"])

    def _send_batches(self, number: int, ends: int) -> None:
        """Report *ends* runs, up to ``MOST_IN_A_BATCH`` in a request; many have the same times."""
        chance = random.Random(f"{self._seed}-batch-{number}")
        sent = 0
        while sent < ends:
            count = min(chance.choice([1, 2, 20, MOST_IN_A_BATCH]), ends - sent)
            batch = [self._short(chance, f"batch-{number}-{sent + place}") for place in range(count)]
            body = json.dumps(batch).encode()
            answer = self._acknowledged("POST", "/api/v1/reports", body, "application/json", "report")
            if wrong := [each for each in answer["receipts"] if not each["accepted"] or each["conflict"]]:
                self.done.errors.append(f"receipts: {wrong!r:.500}")
            with self._lock:
                self.done.outside |= {(each["series"], each["rid"]): each["outcome"] for each in batch}
            sent += count

    def _short(self, chance: random.Random, rid: str) -> dict[str, Any]:
        times: list[dict[str, Any]] = [
            {},
            {"seconds": 5},
            {"seconds": 5, "started_at": "2026-03-01T03:00:00Z"},
        ]
        outcome = chance.choice(OUTCOMES)
        return {"series": chance.choice([*OUTSIDE]), "rid": rid, "outcome": outcome, **chance.choice(times)}

    def _run_agent(self, name: str, ends: int) -> None:
        """Report *ends* runs through the spool and the deliveries of an agent."""
        with delivering(StateDirectory.open(self._directory / name / "state")) as (spool, wake):
            for number in range(ends):
                spool.append(wire.to_json(report_of(name, number)))
                self.done.agents[name] += 1
                if number % 50 == 0:
                    wake()
            wake()
            enough = lambda: not spool.status().records or self.done.errors  # noqa: E731
            if not eventually(enough, within_seconds=RECEIPT_SECONDS):
                raise AssertionError(f"{spool.status().records} records of {name} have no receipt")

    def _import_files(self, rows: int) -> None:
        """Import *rows* runs from files, each again until it is whole; many have the same second."""
        for number, share in enumerate(shares(rows, max(1, rows // 5_000))):
            file = self._directory / f"import-{number}.csv"
            lines = [f"2026-02-01T00:{row // 600 % 60:02}:00Z,{row}\n" for row in range(share)]
            file.write_text("time,value\n" + "".join(lines), encoding="ascii")
            argv = [sys.executable, "manage.py", "import", "csv", str(file), f"--series=imported-{number}"]
            environment = self._installation.environment()
            while not self.done.errors:
                self._import = subprocess.Popen(
                    [*argv, "--apart=yes", "--units=s"],
                    cwd=ROOT,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                output = self._import.communicate()[0]
                if self._import.returncode == 0:
                    break
                if self._import.returncode > 0:
                    raise AssertionError(output.decode(errors="replace"))
            self.done.imported[f"imported-{number}"] = share

    def _request_runs(self, runs: int) -> None:
        """Request *runs* different runs; two requests at once may get the same one, which waits."""
        chance = random.Random(f"{self._seed}-requests")
        while len(self.done.requested) < runs and not self.done.errors:
            path = f"/api/v1/series/{chance.choice(REQUESTED)}/runs"
            answer = self._acknowledged("POST", path, b"{}", "application/json", "run")
            self.done.requested.add(uuid.UUID(answer["id"]))

    def _acknowledged(
        self, method: str, path: str, body: bytes = b"", content_type: str = "", token: str = ""
    ) -> dict[str, Any]:
        """Send the request until it is answered with success; return the answer."""
        until = time.monotonic() + RECEIPT_SECONDS
        headers = {"Content-Type": content_type} if content_type else {}
        if token:
            headers["Authorization"] = f"Bearer {self._secrets[token]}"
        while time.monotonic() < until:
            if self.done.errors:
                raise _Stopped
            status, answer = self._answer(method, path, body, headers)
            with self._lock:
                self.done.answers[status] += 1
            if status in (200, 202):
                return dict(json.loads(answer))
            if status not in (0, 503):
                raise AssertionError(f"{method} {path}: {status} {answer!r:.800}")
            time.sleep(PAUSE_SECONDS)
        raise AssertionError(f"{method} {path}: not acknowledged in {RECEIPT_SECONDS:.0f} s")

    def _answer(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._installation.port, timeout=ANSWER_SECONDS)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()


@contextmanager
def delivering(state: StateDirectory) -> Iterator[tuple[Spool, Callable[[], None]]]:
    """Deliver the spool of the agent in *state* in the block, as the agent does."""
    me = identities.load(state)
    clock = SiteClock()
    notices = Notices(AgentLog(state.path / "agent.log"), clock.now, clock.steady)
    gateway = Gateway(me, ServerClient(parse_url(me.url)), TokenSource(me, state, clock), clock)
    spool = Spool(state.spool, me.reporter, is_durable=False)
    lanes = LaneDeliveries(spool, gateway, me, notices, lambda: None)
    thread = threading.Thread(target=lanes.serve)
    thread.start()
    try:
        yield spool, lanes.wake
    finally:
        lanes.stop()
        thread.join()
        spool.close()


def shares(number: int, parts: int) -> list[int]:
    """Divide *number* into *parts* numbers that differ by at most one."""
    return [number // parts + (part < number % parts) for part in range(parts)]
