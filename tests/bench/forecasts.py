"""Answer forecasts over HTTP, relative to a bare view that reads one row; rank a thousand candidates.

The web server is the one that the demo starts, on a socket; the client is the same for both.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import chain, product
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.depot.series.current_segment import store_current_segments
from monitor.depot.series.segments import local_identity
from monitor.models import ApiToken, ForecastState, Metric, Segment, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.bench import web
from tests.bench.base import Result, interleaved, seconds

SOURCES, TARGETS = 32, 32
RANKED = 1000  # candidates
SINGLES = 960  # requests per round
ROUNDS = 5
CLIENTS = 32
A_SECOND = 400  # requests per second, whether or not earlier ones are answered
FOR_SECONDS = 10
TIMES = 15
_STAGES = json.dumps(
    [
        {"metric": f"stage.{name}.seconds", "mean": 1.5, "median": 1.4, "method": "auto", "predictor": ""}
        for name in ("init", "transfer_ring", "compare", "cleanup")
    ]
)
# Forecasts as a refresh stores them, without values.
_READY = """
INSERT INTO monitor_forecast (metric_id, issued_at, method, predictor, level, last_time, last_known_at, n,
    mean, median, lower, upper, quantiles)
SELECT id, now(), 'auto', '', 0.8, now(), now(), 500, 10 + id, 10, 8, 12, %(quantiles)s FROM monitor_metric;
INSERT INTO monitor_forecaststate (metric_id, is_behind, used_until, n, last_time, last_value, forecast_id,
    stale_at, explanation, record_n, mean_absolute_error, relative_error, mean_absolute_scaled_error,
    winkler_score, less, most)
SELECT metric_id, false, now(), n, now(), 10, id, now() + interval '1 day', %(stages)s, 100, 1, 0.1, 0.8, 4,
    %(counts)s, %(counts)s
FROM monitor_forecast;
INSERT INTO monitor_successstate (series_id, is_behind, n, probability, expected_seconds, quantiles)
SELECT series_id, false, 500, 0.95, 11, (
    SELECT array_agg(quantile * (1 + series_id %% 97)) FROM unnest(%(quantiles)s) AS quantile)
FROM monitor_segment;
ANALYZE
"""


def measure() -> list[Result]:
    candidates = load()
    metrics = list(Metric.objects.values_list("pk", flat=True))
    names = list(Series.objects.order_by("?").values_list("name", flat=True))
    # Connections stay open from one measurement to the next.
    with web.serving("tests.bench.one_row") as address, ThreadPoolExecutor(CLIENTS) as clients:
        ask = web.asking(address, issue_token())
        ours = [f"/api/v1/forecasts?series={name}" for name in names[:SINGLES]]
        bare = [f"/one-row?metric={metric}" for metric in metrics[:SINGLES]]
        return [_throughput(clients, ask, ours, bare), _latency(clients, ask, ours), *_ranks(ask, candidates)]


def load() -> list[dict[str, list[str]]]:
    """Create series with stored forecasts; return the bindings of the candidates."""
    rings = [
        {"ring": [f"from-{source}", f"to-{target}"]}
        for source, target in product(range(SOURCES), range(TARGETS))
    ]
    hosts = [f"{role}-{n}" for role, many in (("from", SOURCES), ("to", TARGETS)) for n in range(many)]
    resources = [ResourceConfig(name, f"site-of-{name}", f"/{name}") for name in hosts]
    define(resources, [SeriesDefinition(f"c-{n}", "circle", ring) for n, ring in enumerate(rings)])
    series = {series.name: series for series in Series.objects.all()}
    for number, ring in enumerate(rings):
        _begin(series[f"c-{number}"], ring)
    quantiles = [10 + probability for probability in QUANTILE_LEVELS]
    counts = [round(100 * probability) for probability in QUANTILE_LEVELS]
    with connection.cursor() as cursor:
        cursor.execute(_READY, {"quantiles": quantiles, "counts": counts, "stages": _STAGES})
    store_current_segments([each_series.pk for each_series in series.values()])
    if ForecastState.objects.count() != len(rings):
        raise AssertionError(f"{ForecastState.objects.count()} answers of {len(rings)}")
    return rings[:RANKED]


def _begin(series: Series, ring: dict[str, list[str]]) -> None:
    """Create the segment of a first run, with its total."""
    identity = local_identity(series.probe, series.parameters, ring)
    segment = Segment.objects.create(
        series=series,
        number=1,
        probe=identity.probe,
        probe_version=identity.probe_version,
        parameters=identity.parameters,
        bindings=ring,
        fingerprint=identity.fingerprint,
        began_at=series.created_at,
    )
    Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


def _throughput(clients: Executor, ask: web.Ask, ours: Sequence[str], bare: Sequence[str]) -> Result:
    """Measure both in turn, with as many clients as the web server has threads."""

    def each(paths: Sequence[str]) -> None:
        list(clients.map(ask, paths))

    each(bare)
    each(ours)
    bare_took, ours_took = interleaved(lambda: each(bare), lambda: each(ours), ROUNDS)
    return Result(
        name="forecasts by HTTP / a view that reads a row",
        ratio=bare_took / ours_took,
        target=0.8,
        better="higher",
        figures={"forecasts/s": len(ours) / ours_took, "rows by a bare view/s": len(bare) / bare_took},
    )


def _latency(clients: Executor, ask: web.Ask, paths: Sequence[str]) -> Result:
    """Measure from the scheduled time of each request: waiting for a busy client counts.

    Each client takes the next number when it is free. One task a client, because handing a task for each
    request to the clients keeps their interpreter busy while the first requests are due.
    """
    many = A_SECOND * FOR_SECONDS
    numbers = iter(range(many))
    gc.collect()
    gc.freeze()  # a collection in this process would stop all clients
    began = time.perf_counter() + 0.1

    def each_at_its_time(_client: int) -> list[float]:
        seconds_of_requests = []
        for number in numbers:
            due = began + number / A_SECOND
            time.sleep(max(due - time.perf_counter(), 0.0))
            ask(paths[number % len(paths)])
            seconds_of_requests.append(time.perf_counter() - due)
        return seconds_of_requests

    took = sorted(chain.from_iterable(clients.map(each_at_its_time, range(CLIENTS))))
    p99 = took[int(0.99 * many)]
    return Result(
        name=f"a forecast by HTTP at {A_SECOND} a second, ms in 99 of 100",
        ratio=p99 * 1000,
        target=10.0,
        better="lower",
        figures={"median, ms": statistics.median(took) * 1000, "slowest, ms": took[-1] * 1000},
    )


def _ranks(ask: web.Ask, candidates: Sequence[dict[str, list[str]]]) -> list[Result]:
    ways = [{"roles": candidate} for candidate in candidates]
    by_role = json.dumps({"application": "circle", "candidates": ways}).encode()
    rank = _ranking(ask, by_role, len(candidates))
    rank()
    took = statistics.median(seconds(rank) for _ in range(TIMES))
    return [
        Result(
            name=f"rank of {len(candidates)} candidates, ms",
            ratio=took * 1000,
            target=100.0,
            better="lower",
            figures={"question, bytes": float(len(by_role))},
        )
    ]


def _ranking(ask: web.Ask, body: bytes, many: int) -> Callable[[], None]:
    def rank() -> None:
        answer: dict[str, Any] = json.loads(ask("/api/v1/forecasts/rank", body))
        if len(answer["ranked"]) != many:
            raise AssertionError(f"{len(answer['ranked'])} of {many}: {answer['unranked'][:1]}")

    return rank


def issue_token() -> str:
    return ApiToken.objects.issue(User.objects.create_user("scheduler"), "bench", ["read"])
