"""The answer to a scrape: collected once in some seconds for the same caller and the same question."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from monitor.core.statement_timeout import is_cancelled
from monitor.web.metrics import definitions as of
from monitor.web.metrics import reporters, requests, series, service, sites
from monitor.web.metrics.definitions import Group
from monitor.web.metrics.scope import ScrapeScope
from monitor.web.metrics.text_format import Family, compressed

if TYPE_CHECKING:
    from monitor.web.metrics.scope import ScrapeRequest

logger = logging.getLogger(__name__)
MOST_ANSWERS = 8  # that are kept
MOST_SCRAPES = 3  # in a process: one collects, the others wait for it; 16 threads serve everything else, too


class ScrapesBusy(Exception):
    """``MOST_SCRAPES`` scrapes are already being answered."""


class AnswerCache:
    """Keeps the newest answers for some seconds; one scrape at a time collects, and few may wait for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places = threading.BoundedSemaphore(MOST_SCRAPES)
        self._collecting = threading.Lock()
        self._answers: OrderedDict[tuple[object, ...], tuple[float, bytes]] = OrderedDict()

    def get(self, key: tuple[object, ...], make: Callable[[], bytes]) -> bytes:
        """Return the valid answer for *key*, or make one.

        Raises:
            ScrapesBusy: there is no valid answer, and enough scrapes wait for one.
        """
        if (answer := self._valid(key)) is not None:
            return answer
        if not self._places.acquire(blocking=False):
            raise ScrapesBusy
        try:
            with self._collecting:
                if (answer := self._valid(key)) is None:  # else made while this scrape waited
                    answer = make()
                    self._keep(key, answer)
                return answer
        finally:
            self._places.release()

    def _valid(self, key: tuple[object, ...]) -> bytes | None:
        made_at, answer = self._answers.get(key, (float("-inf"), b""))
        return answer if self._clock() - made_at < settings.GRIDCAST_METRICS_VALID_SECONDS else None

    def _keep(self, key: tuple[object, ...], answer: bytes) -> None:
        self._answers.pop(key, None)
        self._answers[key] = self._clock(), answer  # a slow scrape does not expire while others wait for it
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)


CACHE = AnswerCache()


def expose(request: ScrapeRequest, media_type: str, cache: AnswerCache = CACHE) -> bytes:
    """Return the metrics in *media_type*, ``TEXT`` or ``OPENMETRICS``, compressed by gzip.

    Raises:
        ScrapesBusy: see ``AnswerCache``.
    """
    return cache.get((*request.key, media_type), lambda: compressed(_collect(request), media_type))


def _collect(request: ScrapeRequest) -> Iterator[Family]:
    scope = ScrapeScope(request, timezone.now(), settings.GRIDCAST_METRICS_MAX_SERIES)
    if Group.SERVICE in request.groups:
        yield from service.collect_without_depot()
    if Group.REQUESTS in request.groups:
        yield from requests.collect()
    try:
        yield from list(_of_depot(scope))
    except DatabaseError as error:
        if is_cancelled(error):  # the database is up, and this answer too large
            raise
        logger.warning("cannot collect metrics from the database: %s", error)
        depot_up = Family(of.DEPOT_UP)
        depot_up.add(0)
        yield depot_up


def _of_depot(scope: ScrapeScope) -> Iterator[Family]:
    groups = scope.request.groups
    if Group.SERVICE in groups:
        yield from service.collect(scope)
    if Group.REPORTERS in groups:
        yield from reporters.collect(scope)
    if Group.SITES in groups:
        yield from sites.collect(scope)
    if groups & {Group.SERIES, Group.STAGES, Group.FORECASTS}:
        yield from series.collect(scope)
