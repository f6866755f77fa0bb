"""Latency of queries while four clients write 500 reports a second, against an idle depot."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import random
import statistics as average
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event

import numpy as np
from django.db import connection, connections
from django.db.models import Q

from monitor.depot.rollups.statistics import statistics_by
from monitor.depot.rollups.worker import gather, roll
from monitor.depot.samples.pairing import paired
from monitor.gridfile.define import SeriesDefinition, define
from monitor.ingest.service import ingest_all
from monitor.models import RawReport, Series, Suite
from monitor.overview.latest import latest
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.bench import years
from tests.bench.base import Result, seconds
from tests.monitor.builders import circle_report
from tests.rollups import roll_all

SERIES, DAYS = 200, 1095  # beside the series that are written to
WRITERS, REPORTS_A_SECOND = 4, 500
WRITTEN_TO = 10_000  # series, three reports a minute each
REPORTS_AT_ONCE = 500
SOME = 100  # series of each kind, as many as a page lists
BATCH_SECONDS = 0.2  # interval in which a writer sends
SLOT_SECONDS = 60
GATHER_SECONDS, ROLL_SECONDS = 2.0, 5.0  # as in the schedule of beat
ASKED = 400
ROLLS = 3  # at least, during the queries: dirty hours accumulate between them
SEED = 5


def measure() -> list[Result]:
    loaded = years.loaded(SERIES, DAYS)
    names = [f"circle-{number}" for number in range(WRITTEN_TO)]
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    tell_once(names)
    named = Q(name__in=names[:SOME]) | Q(name__startswith=years.NAME)
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
    }
    return against_idle(requests, names, quantile=0.99, times=ASKED)


def tell_once(names: Sequence[str]) -> None:
    """Ingest a report of each series, which creates its metrics, and roll up everything."""
    before = datetime.now(UTC) - timedelta(days=1, hours=1)
    for begin in range(0, len(names), REPORTS_AT_ONCE):
        store([circle_report(before, series=name) for name in names[begin : begin + REPORTS_AT_ONCE]])
    roll_all()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def against_idle(
    requests: Mapping[str, Callable[[], object]], names: Sequence[str], *, quantile: float, times: int
) -> list[Result]:
    """Return the *quantile* of the seconds of each query, while series of *names* are written to and idle."""
    idle = _latencies(requests, quantile, times, 0.0)
    before = RawReport.objects.count()
    with _written(names) as began:
        busy = _latencies(requests, quantile, times, ROLLS * ROLL_SECONDS)
        reports = (RawReport.objects.count() - before) / (time.perf_counter() - began)
    percentile = f"p{100 * quantile:.0f}"
    return [
        Result(
            name=f"{name}: {percentile} while written to / idle",
            ratio=busy[name] / idle[name],
            target=3.0,
            better="lower",
            figures={
                f"idle, {percentile} ms": 1e3 * idle[name],
                f"written to, {percentile} ms": 1e3 * busy[name],
                "reports/s meanwhile": reports,
            },
        )
        for name in requests
    ]


def _latencies(
    requests: Mapping[str, Callable[[], object]], quantile: float, times: int, least_seconds: float
) -> dict[str, float]:
    """Run the queries in turn, so that load affects all alike."""
    latencies: dict[str, list[float]] = {name: [] for name in requests}
    for ask in requests.values():
        ask()  # prepares the statements of the connection
    until = time.perf_counter() + least_seconds
    while times > 0 or time.perf_counter() < until:
        times -= 1
        for name, ask in requests.items():
            latencies[name].append(seconds(ask))
    return {name: _high(of_name, quantile) for name, of_name in latencies.items()}


def _high(latencies: Sequence[float], quantile: float) -> float:
    """Return the median of the quantiles of four parts, so that no single moment decides."""
    return float(average.median(np.quantile(part, quantile) for part in np.array_split(latencies, 4)))


@contextlib.contextmanager
def _written(names: Sequence[str]) -> Iterator[float]:
    """Run writers and the rollup worker during the block; yield their start."""
    connections.close_all()  # processes must not share them
    context = multiprocessing.get_context("fork")
    stop, ready = context.Event(), [context.Event() for _ in range(WRITERS)]
    writers = [
        context.Process(target=_write, args=(names[number::WRITERS], stop, ready[number]))
        for number in range(WRITERS)
    ]
    writers.append(context.Process(target=_again, args=(gather, GATHER_SECONDS, stop)))
    writers.append(context.Process(target=_again, args=(_roll_up, ROLL_SECONDS, stop)))
    for writer in writers:
        writer.start()
    try:
        for event in ready:
            if not event.wait(60):
                raise AssertionError("a writer did not begin")
        yield time.perf_counter()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    if any(writer.exitcode for writer in writers):
        raise AssertionError("a writer failed")


def _again(work: Callable[[], object], every_seconds: float, stop: Event) -> None:
    while not stop.wait(every_seconds):
        work()


def _roll_up() -> None:
    roll(datetime.now(UTC))


def _write(names: Sequence[str], stop: Event, ready: Event) -> None:
    """Ingest reports of the series in turn, slot after slot."""
    first = datetime.now(UTC) - timedelta(days=1)
    reports = (
        circle_report(first + number * timedelta(seconds=SLOT_SECONDS), series=name)
        for number in itertools.count()
        for name in names
    )
    size = round(REPORTS_A_SECOND / WRITERS * BATCH_SECONDS)
    due = time.monotonic()
    while not stop.is_set():
        store([*itertools.islice(reports, size)])
        ready.set()
        due += BATCH_SECONDS
        stop.wait(max(due - time.monotonic(), 0))


def store(reports: Sequence[wire.Report]) -> None:
    refused = [
        receipt.error
        for receipt in ingest_all([wire.to_json(report) for report in reports])
        if not receipt.accepted
    ]
    if refused:
        raise AssertionError(refused[0])
