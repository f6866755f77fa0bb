"""Agents deliver the backlog of a week beside fresh reports, against one agent that does so alone.

Time is injected: the backlog has a report a day of each series. GRIDCAST_BENCH_REPORTERS sets the number of
agents (50), GRIDCAST_BENCH_DAYS that of days; with GRIDCAST_BENCH_UPKEEP=1 ticks, rollups and forecasts run
beside them. Agents, web server and PostgreSQL share the machine, so the processor time of each side is
measured too: it hardly depends on what else runs. Every agent has its own spool, key and threads; an eighth
of them shares a process (``backlog_agents.py``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from monitor.core.env import ROOT
from monitor.models import ChainRecord, Reporter, ReporterKey, Run, Series, Site
from monitor.models.chain import Disposition
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.operations.serving.services import CELERY, ONE_THREAD, SKIP_CHECKS, WORKER
from monitor.runs.fleet import signatures
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from reporters.config import ResourceConfig
from reporters.remote import identity as identities
from reporters.remote import signing
from reporters.remote.state_directory import StateDirectory
from reporters.report import run_id
from reporters.spool.records import REPORT
from tests.bench import web
from tests.bench.backlog_agents import SERIES, backlog_slots, report, series_name
from tests.bench.base import Result
from tests.reporters.remote.assignments import enrolled

REPORTERS = int(os.environ.get("GRIDCAST_BENCH_REPORTERS", "50"))
DAYS = int(os.environ.get("GRIDCAST_BENCH_DAYS", "7"))
HAS_UPKEEP = os.environ.get("GRIDCAST_BENCH_UPKEEP") == "1"
ALONE_DAYS = 40
PROCESSES = 8
FRESH_EVERY_SECONDS = 3600.0 / SERIES  # a report of each agent, as of hourly series
MOST_LAG_SECONDS = 60.0
_NOW = datetime.now(UTC).replace(second=0, microsecond=0)


@dataclass(frozen=True)
class Delivered:
    """What some agents delivered: seconds until the backlog was there, and of processor time."""

    reports: int
    seconds: float
    client_seconds: float
    server_seconds: float
    lags: Sequence[float]

    @property
    def rate(self) -> float:
        return self.reports / self.seconds

    def figures(self, name: str) -> dict[str, float]:
        thousands = self.reports / 1000
        return {
            f"{name}, reports": self.reports,
            f"{name}, reports/s": self.rate,
            f"{name}, CPU s of agents / 1,000": self.client_seconds / thousands,
            f"{name}, CPU s of the server / 1,000": self.server_seconds / thousands,
        }


def measure() -> list[Result]:
    names = [f"site-{number}" for number in range(REPORTERS)]
    _define([*names, "reference"])
    _measure_once([*names, "reference"])
    with (
        tempfile.TemporaryDirectory() as directory,
        web.serving("monitor.wsgi") as (host, port),
        _upkeep() if HAS_UPKEEP else nullcontext(),
    ):
        state = Path(directory)
        for name in ["reference", *names]:
            _enrol(name, state / name, f"http://{host}:{port}")
        alone = _deliver([["reference"]], state, ALONE_DAYS, FRESH_EVERY_SECONDS)
        shares = [names[number::PROCESSES] for number in range(min(PROCESSES, REPORTERS))]
        together = _deliver(shares, state, DAYS, FRESH_EVERY_SECONDS / len(shares[0]))
    stored = ChainRecord.objects.filter(kind=REPORT, disposition=Disposition.STORED).count()
    if stored != alone.reports + together.reports:
        raise AssertionError(f"{stored} of {alone.reports + together.reports} reports arrived")
    lag = max(together.lags)
    return [
        Result(
            name="reports/s: backlogs of a week / one agent alone",
            ratio=together.rate / alone.rate,
            target=0.8,
            better="higher",
            figures={"agents": REPORTERS, **together.figures("backlogs"), **alone.figures("alone")},
        ),
        Result(
            name="longest lag of a fresh report beside the backlog / a minute",
            ratio=lag / MOST_LAG_SECONDS,
            target=1.0,
            better="lower",
            figures={
                "longest, s": lag,
                "median, s": sorted(together.lags)[len(together.lags) // 2],
                "fresh reports": len(together.lags),
                "drained in, s": together.seconds,
            },
        ),
    ]


def _define(names: Sequence[str]) -> None:
    for name in names:
        Reporter.objects.create(name=name, site=Site.objects.create(name=name))
    define(
        [ResourceConfig(f"{name}-{end}", name, f"/{name}") for name in names for end in ("a", "b")],
        [
            SeriesDefinition(
                series_name(name, number), "circle", {"ring": [f"{name}-a", f"{name}-b"]}, reporter=name
            )
            for name in names
            for number in range(SERIES)
        ],
    )


def _measure_once(names: Sequence[str]) -> None:
    """Store a report of each series, as there is before an outage: then segments and metrics exist."""
    slot = _NOW - timedelta(days=ALONE_DAYS + 1)
    for name in names:
        bodies = [wire.to_json(report(name, number, slot)) for number in range(SERIES)]
        if not all(receipt.accepted for receipt in ingest_all(bodies)):
            raise AssertionError(name)


def _enrol(name: str, directory: Path, url: str) -> None:
    state = StateDirectory.create(directory)
    me = replace(enrolled(state, url=url), reporter=name)
    identities.save(state, me)
    public_key = signing.load(me.method).public_key(state.path / me.key_file)
    key = signatures.parse_key(me.method, public_key)
    ReporterKey.objects.create(
        reporter=Reporter.objects.get(name=name),
        method=key.method,
        public_key=key.text,
        fingerprint=key.fingerprint,
        enrolled_at=timezone.now(),
    )


def _deliver(
    shares: Sequence[Sequence[str]], state: Path, days: int, fresh_every_seconds: float
) -> Delivered:
    """Have the agents of *shares*, each share in a process, deliver the backlog of *days*."""
    _expect([name for share in shares for name in share], days)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_process([str(state / name) for name in share], days, fresh_every_seconds))
            for share in shares
        ]
        filled = sum(int(_line(process)) for process in processes)
        used = _server_cpu_seconds()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("deliver\n")
            process.stdin.flush()
        done = [json.loads(_line(process)) for process in processes]
        server_seconds = _server_cpu_seconds() - used
    appended = {run: at for each in done for run, at in each["appended"].items()}
    return Delivered(
        reports=filled + len(appended),
        seconds=max(each["drained_seconds"] for each in done),
        client_seconds=sum(each["cpu_seconds"] for each in done),
        server_seconds=server_seconds,
        lags=_lags(appended),
    )


@contextmanager
def _upkeep() -> Iterator[None]:
    """Run the scheduler and the control worker, as ``make serve`` does."""
    beat = [*CELERY, "beat", "--pidfile=", "--loglevel=WARNING"]
    control = [*CELERY, *WORKER, "--queues=control", "--concurrency=2"]
    environment = {**os.environ, **ONE_THREAD, **SKIP_CHECKS}
    with ExitStack() as stack:
        for argv in (control, beat):
            process = stack.enter_context(subprocess.Popen(argv, cwd=ROOT, env=environment))
            stack.callback(process.terminate)
        yield


def _expect(names: Sequence[str], days: int) -> None:
    """Put the slots of the backlog into the ledger, as the ticks after an outage do."""
    keys = dict(Series.objects.values_list("name", "pk"))
    slots = [
        (series_name(name, number), slot) for name in names for number, slot in backlog_slots(_NOW, days)
    ]
    runs = (Run(id=run_id(name, slot), series_id=keys[name], slot=slot, due_at=slot) for name, slot in slots)
    Run.objects.bulk_create(runs, batch_size=10_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE monitor_run")


@contextmanager
def _process(
    directories: Sequence[str], days: int, fresh_every_seconds: float
) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "tests.bench.backlog_agents", _NOW.isoformat(), str(days)]
    with subprocess.Popen(
        [*argv, str(fresh_every_seconds), *directories],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    if not (line := process.stdout.readline()):
        raise RuntimeError("the process of the agents ended; it printed why")
    return line


def _lags(appended: Mapping[str, float]) -> list[float]:
    """Return the seconds from the spooling of each report until the depot had it."""
    records = ChainRecord.objects.filter(kind=REPORT, received_at__gte=_NOW)
    received = dict(records.values_list("run", "received_at"))
    return [received[uuid.UUID(run)].timestamp() - at for run, at in appended.items()]


def _server_cpu_seconds() -> float:
    """Return the processor time of PostgreSQL and of the web server, with their processes that ended."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    web_servers = [int(pid) for pid in children if b"gunicorn" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return sum(map(_tree_cpu_seconds, [_stat(backend).parent, *web_servers]))


class _Stat(NamedTuple):
    parent: int
    cpu_seconds: float  # with that of its ended children


def _stat(pid: int) -> _Stat:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return _Stat(int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"))


def _tree_cpu_seconds(pid: int) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return _stat(pid).cpu_seconds + sum(_tree_cpu_seconds(int(child)) for child in children)
