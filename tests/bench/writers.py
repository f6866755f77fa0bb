"""How long questions take while four write 500 reports a second, against a depot that nobody writes to."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import statistics as average
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event

import numpy as np
from django.db import connections

from monitor.models import Sample, Series
from monitor.services.define import SeriesDefinition, define
from monitor.services.ingest import ingest_all
from monitor.services.latest import latest
from monitor.services.pair import paired
from monitor.services.roll import roll
from monitor.services.statistics import statistics_by
from reporters import report as wire
from reporters.config import Resource
from tests.bench import years
from tests.bench.base import Result, seconds
from tests.monitor.builders import circle_report

SERIES, DAYS = 200, 1095  # beside those that are written to
WRITERS, REPORTS_A_SECOND = 4, 500
BATCH_SECONDS = 0.2  # a writer sends what it has so often
ROLL_SECONDS = 5.0  # as beat says
ASKED = 400
SEED = 5


def measure() -> list[Result]:
    found = years.loaded(SERIES, DAYS)
    names = [f"circle-{number}" for number in range(WRITERS * 25)]
    resources = [Resource(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    draw = random.Random(SEED)
    month = found.end - timedelta(days=30)
    probe = found.metrics[0]
    asked: dict[str, Callable[[], object]] = {
        "30 days, daily": lambda: statistics_by(draw.choice(found.metrics), month, found.end, "day"),
        "3 years, daily": lambda: statistics_by(draw.choice(found.metrics), found.start, found.end, "day"),
        "pairs of 30 days": lambda: paired(
            draw.choice(found.metrics), probe, lag_seconds=0, start=month, end=found.end
        ),
        "the latest of all": lambda: latest(Series.objects.all(), datetime.now(UTC)),
    }
    idle = {name: _p99(ask) for name, ask in asked.items()}
    before = Sample.objects.count()
    with _written(names) as began:
        busy = {name: _p99(ask) for name, ask in asked.items()}
        reports = (Sample.objects.count() - before) / 8 / (time.perf_counter() - began)
    return [
        Result(
            name=f"{name}: p99 while written to / idle",
            ratio=busy[name] / idle[name],
            target=3.0,
            better="lower",
            figures={
                "idle, p99 ms": 1e3 * idle[name],
                "written to, p99 ms": 1e3 * busy[name],
                "reports/s meanwhile": reports,
            },
        )
        for name in asked
    ]


def _p99(ask: Callable[[], object]) -> float:
    took = [seconds(ask) for _ in range(ASKED)]
    return float(average.median(np.quantile(part, 0.99) for part in np.array_split(took, 4)))


@contextlib.contextmanager
def _written(names: list[str]) -> Iterator[float]:
    """Writers are at work, and who rolls up; since when."""
    connections.close_all()  # none is shared with the processes
    context = multiprocessing.get_context("fork")
    stop, ready = context.Event(), [context.Event() for _ in range(WRITERS)]
    writers = [
        context.Process(target=_write, args=(names[number::WRITERS], stop, ready[number]))
        for number in range(WRITERS)
    ]
    writers.append(context.Process(target=_roll_up, args=(stop,)))
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


def _roll_up(stop: Event) -> None:
    while not stop.wait(ROLL_SECONDS):
        roll(datetime.now(UTC))


def _write(names: list[str], stop: Event, ready: Event) -> None:
    slot = datetime.now(UTC) - timedelta(hours=6)
    size = round(REPORTS_A_SECOND / WRITERS * BATCH_SECONDS)
    due = time.monotonic()
    while not stop.is_set():
        slot += timedelta(seconds=1)
        bodies = [wire.to_json(circle_report(slot, series=name)) for name in names[:size]]
        refused = [one.error for one in ingest_all(bodies) if not one.accepted]
        if refused:
            raise AssertionError(refused[0])
        ready.set()
        due += BATCH_SECONDS
        stop.wait(max(due - time.monotonic(), 0))
