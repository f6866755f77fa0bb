"""The answer to a scrape: collected once in some seconds for the same caller and the same question."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics

from monitor.metrics import definitions as of
from monitor.metrics import reporters, requests, series, service, sites
from monitor.metrics.definitions import Group
from monitor.metrics.scope import ScrapeScope

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from monitor.metrics.scope import ScrapeRequest

logger = logging.getLogger(__name__)
MOST_ANSWERS = 8  # that are kept

TEXT, OPENMETRICS = "text/plain", "application/openmetrics-text"  # in the order of preference
_ENCODERS: dict[str, tuple[Callable[[Any], bytes], str]] = {
    TEXT: (exposition.generate_latest, exposition.CONTENT_TYPE_PLAIN_0_0_4),
    OPENMETRICS: (openmetrics.generate_latest, openmetrics.CONTENT_TYPE_LATEST),
}


class AnswerCache:
    """Keeps the newest answers for some seconds; concurrent scrapes wait for the one that collects."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[object, ...], tuple[float, bytes]] = OrderedDict()

    def get(self, key: tuple[object, ...], make: Callable[[], bytes]) -> bytes:
        with self._lock:
            made_at, answer = self._answers.pop(key, (float("-inf"), b""))
            if self._clock() - made_at >= settings.GRIDCAST_METRICS_VALID_SECONDS:
                made_at, answer = self._clock(), make()
            self._answers[key] = made_at, answer
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
            return answer


_cache = AnswerCache()


def expose(request: ScrapeRequest, media_type: str, cache: AnswerCache = _cache) -> tuple[bytes, str]:
    """Return the metrics in *media_type*, ``TEXT`` or ``OPENMETRICS``, and their Content-Type."""
    encode, content_type = _ENCODERS[media_type]
    body = cache.get((*request.key, media_type), lambda: encode(_Collected(request)))
    return body, content_type


class _Collected:
    """A collector of prometheus_client for one scrape."""

    def __init__(self, request: ScrapeRequest) -> None:
        self._request = request

    def collect(self) -> Iterator[Metric]:
        scope = ScrapeScope(self._request, timezone.now(), settings.GRIDCAST_METRICS_MAX_SERIES)
        groups = self._request.groups
        if Group.SERVICE in groups:
            yield from service.collect_without_depot()
        if Group.REQUESTS in groups:
            yield from requests.collect()
        try:
            yield from list(_of_depot(scope))
        except DatabaseError as error:
            logger.warning("cannot collect metrics from the database: %s", error)
            family = of.DEPOT_UP.family()
            family.add_metric([], 0)
            yield family


def _of_depot(scope: ScrapeScope) -> Iterator[Metric]:
    groups = scope.request.groups
    if Group.SERVICE in groups:
        yield from service.collect(scope)
    if Group.REPORTERS in groups:
        yield from reporters.collect(scope)
    if Group.SITES in groups:
        yield from sites.collect(scope)
    if groups & {Group.SERIES, Group.STAGES, Group.FORECASTS}:
        yield from series.collect(scope)
