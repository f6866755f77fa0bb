"""Requests, receipts and group commits: counted by every process, exported by the one that is scraped."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from django.conf import settings
from redis.exceptions import RedisError

from monitor.core.counters import counters
from monitor.web.metrics import definitions as of
from monitor.web.metrics.text_format import Family, labelled, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

    from monitor.core.counters import Counter
    from monitor.web.metrics.definitions import MetricDefinition

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LE = (*map(number, BOUNDS), "+Inf")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKET, _SUM = f"{of.REQUEST_SECONDS.name}_bucket", f"{of.REQUEST_SECONDS.name}_sum"
_COUNTERS = (
    of.REQUESTS,
    of.PARTS_FAILED,
    of.RECEIPTS,
    of.COMMITS,
    of.COMMIT_REQUESTS,
    of.COMMIT_SECONDS,
    of.TRACES_EXPORTED,
    of.TRACES_DROPPED,
)


class RequestCountMiddleware:
    """Count every answer by method, route and class of its status, and the time until it began."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        begun = time.perf_counter()
        response = self.get_response(request)
        seconds = time.perf_counter() - begun
        route = _route(request)
        method = request.method if request.method in _METHODS else "other"
        counters.add_all(
            [
                ((of.REQUESTS.name, str(method), route, f"{response.status_code // 100}xx"), 1.0),
                ((_BUCKET, route, _LE[bisect_left(BOUNDS, seconds)]), 1.0),
                ((_SUM, route), seconds),
            ]
        )
        return response


def _route(request: HttpRequest) -> str:
    """Return the pattern of the URL, whose number is bounded; ``none`` if no pattern matches."""
    if request.resolver_match is not None:
        return f"/{request.resolver_match.route}"
    static = f"/{settings.STATIC_URL.strip('/')}/"
    return static if request.path_info.startswith(static) else "none"


def collect() -> Iterator[Family]:
    """Yield the counters of all processes; nothing while the server that holds them is unavailable."""
    try:
        counts = counters.read()
    except RedisError:
        return
    for definition in _COUNTERS:
        yield _counter(definition, counts)
    yield _histogram(counts)


def _counter(definition: MetricDefinition, counts: Mapping[Counter, float]) -> Family:
    family = Family(definition)
    for (name, *labels), count in sorted(counts.items()):
        if name == definition.name:
            family.add(count, *labels)
    return family


def _histogram(counts: Mapping[Counter, float]) -> Family:
    family = Family(of.REQUEST_SECONDS)
    buckets: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (name, *values), count in counts.items():
        if name == _BUCKET:
            buckets[values[0]][values[1]] = count
    for route, numbers in sorted(buckets.items()):
        labels, total = labelled(of.REQUEST_SECONDS.labels, [route]), 0.0
        for bound in _LE:
            total += numbers.get(bound, 0.0)
            family.add_labelled(total, f'{labels},le="{bound}"', "_bucket")
        family.add_labelled(total, labels, "_count")
        family.add_labelled(counts.get((_SUM, route), 0.0), labels, "_sum")
    return family
