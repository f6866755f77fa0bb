"""Runs that do nothing, from the ledger through the broker to the depot, against bare Celery tasks.

Both go through the same broker to workers with the same settings and as many processes. The bare tasks are
sent while they are worked on, as runs are claimed and sent while others run.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone

from monitor.core.env import ROOT, make_var_directory
from monitor.models import Reporter, Run, Series, Transition
from monitor.models.run import State
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from reporters.report import run_id
from tests.bench.bare import app as bare
from tests.bench.base import Result
from tests.waiting import eventually

SERIES = 500
RUNS = 10_000
PROCESSES = 4
CAPACITY = 400
LIMIT_SECONDS = 300.0
CELERY = (sys.executable, "-m", "celery", "--quiet")
WORKER = ("worker", "--without-gossip", "--without-mingle", "--loglevel=WARNING")


def measure() -> list[Result]:
    with _bare_worker():
        bare_rate = _bare_rate()
    with _gridcast():
        rate = _rate()
    ended = Run.objects.filter(state=State.PASSED).count()
    if ended < RUNS:
        raise AssertionError(f"{RUNS - ended} of {RUNS} runs did not pass")
    return [
        Result(
            name="runs through the ledger / bare Celery",
            ratio=rate / bare_rate,
            target=0.5,
            better="higher",
            figures={"runs/s": rate, "bare tasks/s": bare_rate},
        )
    ]


def _bare_rate() -> float:
    _send_bare(PROCESSES * 10)  # all processes are there, and connected
    began = time.perf_counter()
    _send_bare(RUNS)
    return RUNS / (time.perf_counter() - began)


def _send_bare(tasks: int) -> None:
    for _ in range(tasks):
        bare.send_task("bare.noop", (str(uuid.uuid4()),), queue="bare", retry=False)
    with bare.connection_for_read() as away:
        broker = away.default_channel.client  # type: ignore[attr-defined]  # Redis has one
        _wait("the bare tasks", lambda: not broker.llen("bare") and not broker.hlen("unacked"))


def _rate() -> float:
    """Runs a second, from when the first is claimed until the last has ended."""
    series = _defined()
    Run.objects.bulk_create(_runs(series, 0, SERIES))  # how long a run of each series takes is known then
    _wait("the first runs", lambda: not Run.objects.pending().exists())
    with transaction.atomic():
        Run.objects.bulk_create(_runs(series, 1, RUNS), batch_size=2000)
        before = Transition.objects.latest("id").pk
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # the benchmark's server does not do so by itself
    _wait("the runs", lambda: not Run.objects.pending().exists())
    span = Transition.objects.filter(pk__gt=before).aggregate(began=Min("at"), ended=Max("at"))
    return RUNS / float((span["ended"] - span["began"]).total_seconds())


def _defined() -> list[Series]:
    resource = ResourceConfig("here", "here", str(make_var_directory(settings.VAR_DIR / "here")))
    names = [f"noop-{number}" for number in range(SERIES)]
    define([resource], [SeriesDefinition(name, "noop", {"target": ["here"]}) for name in names])
    Reporter.objects.update(capacity=CAPACITY)
    return list(Series.objects.filter(name__in=names))


def _runs(series: list[Series], group: int, number: int) -> Iterator[Run]:
    """*number* runs that are due, of each series in turn; those of another *group* have other slots."""
    latest = timezone.now() - timedelta(days=group)
    for index in range(number):
        whose, slot = series[index % SERIES], latest - timedelta(seconds=number - index)
        yield Run(id=run_id(whose.name, slot), series=whose, slot=slot, due_at=slot, trigger="the bench")


def _wait(what: str, done: Callable[[], bool]) -> None:
    if not eventually(done, within_seconds=LIMIT_SECONDS):
        raise AssertionError(f"{what} took more than {LIMIT_SECONDS:.0f} s")


@contextlib.contextmanager
def _bare_worker() -> Iterator[None]:
    with _started(
        "--app=tests.bench.bare", *WORKER, "--queues=bare", f"--concurrency={PROCESSES}", "-n", "bare@%h"
    ):
        yield


@contextlib.contextmanager
def _gridcast() -> Iterator[None]:
    ours = "--app=monitor.celery"
    with (
        _started(ours, *WORKER, "--queues=reporter.home", f"--concurrency={PROCESSES}", "-n", "reporter@%h"),
        _started(ours, *WORKER, "--queues=control", "--concurrency=1", "-n", "control@%h"),
        _started(ours, "beat", "--pidfile=", "--loglevel=WARNING"),
    ):
        yield


@contextlib.contextmanager
def _started(*argv: str) -> Iterator[None]:
    with subprocess.Popen([*CELERY, *argv], cwd=ROOT) as process:
        try:
            yield
        finally:
            process.terminate()
