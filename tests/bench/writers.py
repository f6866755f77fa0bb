"""Latency of queries while four clients write 500 reports a second, against an idle depot."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event

import numpy as np
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.models import Q

from monitor.analysis.forecasts.defaults import HEADLINE
from monitor.analysis.forecasts.query import ForecastQuestion, answer_question
from monitor.depot.rollups.statistics import statistics_by
from monitor.depot.rollups.worker import gather, roll
from monitor.depot.samples.pairing import paired
from monitor.models import RawReport, Series, Suite
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest_all
from monitor.web.status.latest import latest
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.bench import forecasts, years
from tests.bench.base import Result, seconds
from tests.monitor.builders import circle_report
from tests.rollups import roll_all

SERIES, DAYS = 200, 1095  # beside the series that are written to
WRITERS, REPORTS_A_SECOND = 4, 500
WRITTEN_TO = 10_000  # series, three reports a minute each
REPORTS_AT_ONCE = 500
SOME = 100  # series of each kind, as many as a page lists; spread over the series that are written to
BUILT_BEFORE = 4000  # reports of each writer, enough for all parts on an idle machine
BATCH_SECONDS = 0.2  # interval in which a writer sends
SLOT_SECONDS = 60
GATHER_SECONDS, ROLL_SECONDS = 2.0, 5.0  # as in the schedule of beat
ASKED = 100  # in each part
PARTS = 4  # idle, then written to
ROLLS = 1  # at least, during each part written to: dirty hours accumulate between them
SEED = 5


def measure() -> list[Result]:
    forecasts.load()
    forecast = list(Series.objects.values_list("name", flat=True))
    reader = User.objects.create_user("bench-writers", is_superuser=True)
    loaded = years.loaded(SERIES, DAYS)
    names = [f"circle-{number}" for number in range(WRITTEN_TO)]
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    tell_once(names)
    named = Q(name__in=names[:: WRITTEN_TO // SOME]) | Q(name__startswith=years.NAME)
    asked_for, _ = Suite.objects.get_or_create(name="asked-for")
    Series.objects.filter(named).update(suite=asked_for)
    some = Series.objects.filter(suite=asked_for)
    draw = random.Random(SEED)
    month = loaded.end - timedelta(days=30)
    probe = loaded.metrics[0]
    requests: dict[str, Callable[[], object]] = {
        "30 days, daily": lambda: statistics_by(draw.choice(loaded.metrics), month, loaded.end, "day"),
        "3 years, daily": lambda: statistics_by(draw.choice(loaded.metrics), loaded.start, loaded.end, "day"),
        "pairs of 30 days": lambda: paired(
            draw.choice(loaded.metrics), probe, lag_seconds=0, start=month, end=loaded.end
        ),
        "latest of 300 series": lambda: latest(some, datetime.now(UTC)),
        "a forecast": lambda: answer_question(
            reader, ForecastQuestion(draw.choice(forecast), HEADLINE), datetime.now(UTC), within_seconds=0.0
        ),
    }
    return against_idle(requests, names, quantile=0.99, times=ASKED, target=2.0)


def tell_once(names: Sequence[str]) -> None:
    """Ingest a report of each series, which creates its metrics, and roll up everything."""
    before = datetime.now(UTC) - timedelta(days=1, hours=1)
    for begin in range(0, len(names), REPORTS_AT_ONCE):
        some = names[begin : begin + REPORTS_AT_ONCE]
        store([wire.to_json(circle_report(before, series=name)) for name in some])
    roll_all()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def against_idle(
    requests: Mapping[str, Callable[[], object]],
    names: Sequence[str],
    *,
    quantile: float,
    times: int,
    target: float,
) -> list[Result]:
    """Return the *quantile* of the seconds of each query, while series of *names* are written to and idle.

    Idle parts and parts written to alternate and are of the same length, so that other load of the machine
    affects both alike. The quantile is that of all parts together: of one part, it is one of its two or
    three slowest queries.
    """
    idle: dict[str, list[float]] = {name: [] for name in requests}
    busy: dict[str, list[float]] = {name: [] for name in requests}
    reports, written_seconds = 0, 0.0
    with _written(names) as writing:
        for _ in range(PARTS):
            _ask(requests, times, ROLLS * ROLL_SECONDS, idle)
            before = RawReport.objects.count()
            with writing():
                written_seconds += seconds(lambda: _ask(requests, times, ROLLS * ROLL_SECONDS, busy))
            reports += RawReport.objects.count() - before
    percentile = f"p{100 * quantile:.0f}"
    return [
        _against_idle(
            f"{name}: {percentile} while written to / idle",
            float(np.quantile(busy[name], quantile)),
            float(np.quantile(idle[name], quantile)),
            target,
            {"reports/s meanwhile": reports / written_seconds},
        )
        for name in requests
    ]


def _against_idle(
    name: str, busy_seconds: float, idle_seconds: float, target: float, figures: Mapping[str, float]
) -> Result:
    return Result(
        name=name,
        ratio=busy_seconds / idle_seconds,
        target=target,
        better="lower",
        figures={"idle, ms": 1e3 * idle_seconds, "written to, ms": 1e3 * busy_seconds, **figures},
    )


def _ask(
    requests: Mapping[str, Callable[[], object]],
    times: int,
    least_seconds: float,
    latencies: Mapping[str, list[float]],
) -> None:
    """Run the queries in turn, so that load affects all alike; add their seconds to *latencies*."""
    for ask in requests.values():
        ask()  # prepares the statements of the connection
    until = time.perf_counter() + least_seconds
    while times > 0 or time.perf_counter() < until:
        times -= 1
        for name, ask in requests.items():
            latencies[name].append(seconds(ask))


@dataclass(frozen=True)
class _Signals:
    """The processes beside the queries work while *go* is set, until *stop* is set."""

    go: Event
    stop: Event


@contextlib.contextmanager
def _written(names: Sequence[str]) -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """Start writers and the rollup worker; yield a context manager during whose block they work."""
    connections.close_all()  # processes must not share them
    context = multiprocessing.get_context("fork")
    signals = _Signals(context.Event(), context.Event())
    ready = [context.Event() for _ in range(WRITERS)]
    writers = [
        context.Process(
            target=_write,
            # Senders know nothing of each other: in step, they would send 100 reports at once, then none.
            args=(_reports(names[number::WRITERS]), number * BATCH_SECONDS / WRITERS, signals, ready[number]),
        )
        for number in range(WRITERS)
    ]
    writers.append(context.Process(target=_again, args=(signals, GATHER_SECONDS, gather)))
    writers.append(context.Process(target=_again, args=(signals, ROLL_SECONDS, _roll_up)))

    @contextlib.contextmanager
    def writing() -> Iterator[None]:
        signals.go.set()
        for event in ready:
            if not event.wait(60):
                raise AssertionError("a writer did not begin")
        yield
        signals.go.clear()

    for writer in writers:
        writer.start()
    try:
        yield writing
    finally:
        signals.stop.set()
        signals.go.set()
        for writer in writers:
            writer.join()
    if any(writer.exitcode for writer in writers):
        raise AssertionError("a writer failed")


def _again(
    signals: _Signals, every_seconds: float, work: Callable[[], object], after_seconds: float = 0.0
) -> None:
    while not signals.stop.is_set():
        signals.go.wait()
        due = time.monotonic() + every_seconds + after_seconds
        while not signals.stop.wait(max(due - time.monotonic(), 0)) and signals.go.is_set():
            work()
            due += every_seconds


def _roll_up() -> None:
    roll(datetime.now(UTC))


def _reports(names: Sequence[str]) -> Iterator[bytes]:
    """Return reports of the series in turn, slot after slot; the first ones are built already.

    Senders are other machines: their work must not compete with the queries.
    """
    first = datetime.now(UTC) - timedelta(days=1)
    reports = (
        wire.to_json(circle_report(first + number * timedelta(seconds=SLOT_SECONDS), series=name))
        for number in itertools.count()
        for name in names
    )
    built = [*itertools.islice(reports, BUILT_BEFORE)]
    return itertools.chain(built, reports)


def _write(reports: Iterator[bytes], after_seconds: float, signals: _Signals, ready: Event) -> None:
    """Ingest reports, some each ``BATCH_SECONDS``; begin *after_seconds*."""
    size = round(REPORTS_A_SECOND / WRITERS * BATCH_SECONDS)

    def batch() -> None:
        store([*itertools.islice(reports, size)])
        ready.set()

    _again(signals, BATCH_SECONDS, batch, after_seconds)


def store(bodies: Sequence[bytes]) -> None:
    refused = [receipt.error for receipt in ingest_all(bodies) if not receipt.accepted]
    if refused:
        raise AssertionError(refused[0])
