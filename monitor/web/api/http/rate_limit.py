"""The number of requests that one caller may send: so many within ten seconds, over all web processes.

The callers are tokens, users of a session, reporters, and addresses of clients that did not authenticate. The
server of the broker counts: a process adds its requests in batches, so that most requests ask no server.
Without that server, each process counts for itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

import redis
from django.conf import settings
from ninja.throttling import BaseThrottle

from monitor.core import valkey
from monitor.models.token import Sender
from monitor.operations.web_server.client_address import client_address

if TYPE_CHECKING:
    from django.http import HttpRequest

logger = logging.getLogger(__name__)
WINDOW_SECONDS = 10
_BATCHES = 100  # in which a process reports a caller's whole limit
_MOST_CALLERS = 10_000  # counted by a process; then it forgets those of earlier windows
_TIMEOUT_SECONDS = 0.1  # of the server that counts


class Totals(Protocol):
    """Counts over all processes."""

    def add(self, caller: str, window: int, count: int) -> int:
        """Add *count* to that of *caller* in *window*; return the sum of all processes.

        Raises:
            redis.RedisError: the server cannot be reached.
        """
        ...


class SharedTotals:
    """Counts in the server of the broker, apart from those of other *kinds*."""

    def __init__(self, url: str, kind: str) -> None:
        self._kind = kind
        self._client = valkey.connect(url, within_seconds=_TIMEOUT_SECONDS)

    def add(self, caller: str, window: int, count: int) -> int:
        key = f"gridcast:{self._kind}:{caller}:{window}"
        with self._client.pipeline(transaction=False) as pipe:
            pipe.incrby(key, count)
            pipe.expire(key, 2 * WINDOW_SECONDS)
            total, _ = pipe.execute()
        return int(total)


@dataclass
class _Requests:
    window: int
    total: int = 0  # of all processes, when this one last asked
    own: int = 0  # since then


@dataclass(frozen=True)
class Standing:
    """How much of the *limit* a caller has left in this window, which ends in *reset_seconds*."""

    limit: int
    left: int
    reset_seconds: int

    @property
    def is_exceeded(self) -> bool:
        return self.left < 0

    def headers(self) -> dict[str, str]:
        """Return the fields of draft-ietf-httpapi-ratelimit-headers."""
        return {
            "RateLimit-Policy": f'"requests";q={self.limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"requests";r={max(self.left, 0)};t={self.reset_seconds}',
        }


class RateLimit:
    """Counts what callers use. *clock*: seconds since 1970; *limit*: what a caller may use in a window."""

    def __init__(
        self, totals: Totals, limit: Callable[[str], int], clock: Callable[[], float] = time.time
    ) -> None:
        self._totals, self._limit, self._clock = totals, limit, clock
        self._counts: dict[str, _Requests] = {}
        self._lock = threading.Lock()
        self._away_until = 0.0

    def count(self, caller: str, amount: int = 1) -> Standing:
        """Count *amount* for *caller*; 0 tells the standing that this process knows."""
        limit, now = self._limit(caller), self._clock()
        window, position = divmod(int(now), WINDOW_SECONDS)
        with self._lock:
            counted = self._counts.get(caller)
            if counted is None or counted.window != window:
                counted = self._begin(caller, window)
            counted.own += amount
            due = counted.own if counted.own >= max(limit // _BATCHES, 1) else 0
            counted.own -= due
            counted.total += due
            used = counted.total + counted.own
        if due:
            used = self._add(caller, counted, due, used, now)
        return Standing(limit, limit - used, WINDOW_SECONDS - position)

    def _begin(self, caller: str, window: int) -> _Requests:
        if len(self._counts) >= _MOST_CALLERS:
            self._counts = {name: count for name, count in self._counts.items() if count.window == window}
        counted = self._counts[caller] = _Requests(window)
        return counted

    def _add(self, caller: str, counted: _Requests, due: int, used: int, now: float) -> int:
        """Add *due* requests to the totals; return how many all processes have answered."""
        if now < self._away_until:
            return used
        try:
            total = self._totals.add(caller, counted.window, due)
        except redis.RedisError as error:
            self._away_until = now + valkey.PAUSE_SECONDS
            logger.warning("callers are counted by process for %.0f s: %s", valkey.PAUSE_SECONDS, error)
            return used
        with self._lock:
            counted.total = max(counted.total, total)
            return counted.total + counted.own


@cache
def rate_limit() -> RateLimit:
    """Return the rate limit of this process."""
    return RateLimit(
        SharedTotals(settings.CELERY_BROKER_URL, "rate"), lambda _: settings.GRIDCAST_API_REQUESTS
    )


class CallerThrottle(BaseThrottle):
    """Counts each authenticated request; ``request.rate`` is the standing of its caller."""

    def allow_request(self, request: HttpRequest) -> bool:
        standing = rate_limit().count(_caller(request))
        request.rate = standing  # type: ignore[attr-defined]
        return not standing.is_exceeded

    def wait(self) -> float | None:
        return WINDOW_SECONDS - time.time() % WINDOW_SECONDS


def count_unauthenticated(request: HttpRequest) -> Standing:
    return rate_limit().count(f"address:{client_address(request)}")


def _caller(request: HttpRequest) -> str:
    auth = getattr(request, "auth", None)
    if auth is None:
        return f"address:{client_address(request)}"
    return f"user:{auth.user}" if isinstance(auth, Sender) else f"{type(auth).__name__}:{auth.pk}"
