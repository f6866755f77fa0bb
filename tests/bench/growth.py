"""The questions of every day in a depot with ten times the samples, asked in turn of both depots.

``GRIDCAST_GROWTH_SAMPLES`` is the number of samples of the larger depot. By default it has 260 million, three
decades of hourly reports, which need about 52 GB of disk. If the disk has less room, both depots are smaller;
the figures name their sizes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import statistics as average
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import connection, connections
from psycopg import sql

from monitor.analysis.forecasts.query import ForecastQuestion, answer_question
from monitor.analysis.forecasts.refresh import refresh
from monitor.depot.rollups.statistics import statistics_by
from monitor.depot.rollups.worker import gather
from monitor.models import Series
from monitor.web.matrix.matrix import overview_of_groups
from monitor.web.status.latest import latest
from tests.bench import histories
from tests.bench.base import Result, seconds
from tests.bench.histories import History
from tests.databases import in_postgres, using_settings

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SAMPLES = int(os.environ.get("GRIDCAST_GROWTH_SAMPLES", "260000000"))
TIMES_AS_MANY = 10
ROUNDS = 25
WARM = 8  # rounds: frequent statements are prepared, and their plans kept
MONTH = timedelta(days=30)
SEED = 5

# In the order of a round. The reports are gathered by the forecasts: before, ten series have newer runs than
# their stored states.
REPORTS, DAYS, LATEST, OVERVIEW, REFRESH, FORECAST = (
    "ten reports stored",
    "30 days, daily mean and p95",
    "latest of all series",
    "overview",
    "forecasts of ten series refreshed",
    "a forecast",
)
QUESTIONS = (REPORTS, DAYS, LATEST, OVERVIEW, REFRESH, FORECAST)


def measure() -> list[Result]:
    small, large = sizes()
    with _depot("growth_small", small) as ask_small, _depot("growth_large", large) as ask_large:
        taken = _taken(ask_small, ask_large)
    figures = {
        "samples of the larger depot": large * histories.SAMPLES_A_DAY,
        "its days": large,
        "samples of the smaller depot": small * histories.SAMPLES_A_DAY,
    }
    return [
        Result(
            name=f"{question}, {TIMES_AS_MANY} times the samples",
            ratio=many / few,
            target=1.3,
            better="lower",
            figures={"with the samples, ms": 1e3 * few, "with ten times as many, ms": 1e3 * many, **figures},
        )
        for question, (few, many) in taken.items()
    ]


def sizes() -> tuple[int, int]:
    """Return the days of the two histories: as wanted, or as many as three quarters of the free disk hold."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        free_bytes = shutil.disk_usage(cursor.fetchone()[0]).free
    both = 1 + 1 / TIMES_AS_MANY
    samples = min(SAMPLES, 0.75 * free_bytes / histories.BYTES_A_SAMPLE / both)
    small = max(round(samples / histories.SAMPLES_A_DAY / TIMES_AS_MANY), 31)
    return small, TIMES_AS_MANY * small


Ask = Callable[[str], float]


def _taken(small: Ask, large: Ask) -> Mapping[str, tuple[float, float]]:
    """Return the median seconds of each question in both depots."""
    pairs: dict[str, list[tuple[float, float]]] = {question: [] for question in QUESTIONS}
    for number in range(WARM + ROUNDS):
        for question in QUESTIONS:
            if number % 2:
                pair = small(question), large(question)
            else:  # the second is faster: caches of processors are warm
                pair = (large(question), small(question))[::-1]
            if number >= WARM:
                pairs[question].append(pair)
    return {
        question: (average.median(few for few, _ in of), average.median(many for _, many in of))
        for question, of in pairs.items()
    }


@contextlib.contextmanager
def _depot(name: str, days: int) -> Iterator[Ask]:
    """Load *days* into a depot of its own; yield a function that asks a question there, and its seconds."""
    template = connection.settings_dict["NAME"]
    connections.close_all()
    in_postgres("CREATE DATABASE {} TEMPLATE {}", sql.Identifier(name), sql.Identifier(str(template)))
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=_answer, args=(ours, theirs, name, days))
    process.start()
    theirs.close()

    def ask(question: str) -> float:
        ours.send(question)
        taken: float = ours.recv()
        return taken

    try:
        if ours.recv() != "loaded":
            raise AssertionError(name)
        yield ask
    finally:
        ours.close()
        process.join()
        in_postgres("DROP DATABASE {} WITH (FORCE)", sql.Identifier(name))


def _answer(other_end: Connection, asked: Connection, name: str, days: int) -> None:
    """Load the depot *name*, then answer questions until the other end is closed."""
    other_end.close()  # of this process
    with using_settings({"NAME": name}):
        history = histories.load(days)
        print(f" {name}: {history.load_seconds:.0f} s, {history.rebuild_seconds:.0f} s", end="", flush=True)
        questions = _questions(history)
        asked.send("loaded")
        with contextlib.suppress(EOFError):
            while True:
                asked.send(seconds(questions[asked.recv()]))


def _questions(history: History) -> dict[str, Callable[[], object]]:
    draw = random.Random(SEED)
    reader = User.objects.create_user("bench-growth", is_superuser=True)
    names = [series.name for series in history.series[: histories.REPORTING]]
    batches = histories.reports(history)
    month = history.end - MONTH

    def forecast() -> object:
        question = ForecastQuestion(draw.choice(names), "total.seconds", max_age=10 * MONTH)
        return answer_question(reader, question, datetime.now(UTC), within_seconds=0.0)

    def refreshed() -> None:
        gather()
        refresh(datetime.now(UTC), within_seconds=60.0)

    return {
        REPORTS: lambda: histories.store(next(batches)),
        DAYS: lambda: statistics_by(draw.choice(history.metrics), month, history.end, "day"),
        LATEST: lambda: latest(Series.objects.all(), datetime.now(UTC)),
        OVERVIEW: lambda: overview_of_groups(reader, datetime.now(UTC)),
        REFRESH: refreshed,
        FORECAST: forecast,
    }
