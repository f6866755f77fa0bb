"""Limits of failed attempts to log in, counted in windows of time.

An attempt holds a place while it is checked, so that many at once cannot pass a limit together: where the
places and the failures reach it, a further attempt waits for a place. Only failures refuse. A window begins
with the first failure and ends by the clock, whatever happens in it, so no lock lasts longer. And the limits
keep a way open for the owner of an account under attack:

- A single address can use up only its own few attempts at an account.
- Many addresses together can use up those of all unknown browsers; a browser in which the user has logged in
  before has attempts of its own, also at the second factor, and passkeys and identity providers need none.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address

from django.conf import settings
from django.db import InterfaceError, OperationalError

from monitor.core import valkey
from monitor.core.networks import ip_of, ipv6_network
from monitor.web.accounts.failure_counts import (
    ANSWER_SECONDS,
    AttemptRuling,
    AttemptState,
    Counts,
    SharedCounts,
    ValkeyCounts,
)

WAIT_SECONDS = 3.0  # for a place
MOST_WAITING = 4  # in a process, whose threads they occupy
_ASK_SECONDS = 0.1  # how often a waiting attempt looks for places that another process has given back


@dataclass(frozen=True)
class FailureLimit:
    """At most *failures* in a window; *is_personal*: success also forgives what failed before."""

    name: str
    failures: int
    is_personal: bool = False


ADDRESS = FailureLimit("address", 30)
NETWORK = FailureLimit("network", 150)
USER = FailureLimit("user", 50)
USER_AT_ADDRESS = FailureLimit("user at address", 5, is_personal=True)
KNOWN_BROWSER = FailureLimit("known browser", 10, is_personal=True)
START = FailureLimit("start of a login", 120)
SECOND_FACTOR = FailureLimit("second factor", 10, is_personal=True)
SECOND_FACTOR_IN_KNOWN_BROWSER = FailureLimit("second factor in a known browser", 10, is_personal=True)
SECOND_FACTOR_IN_ALL = FailureLimit("second factor in all", 50)

Counted = tuple[FailureLimit, str]


class TooManyFailures(Exception):
    """*limit* is reached until *retry_seconds* from now; *is_news*: it is the first refusal of the window."""

    def __init__(self, limit: FailureLimit, retry_seconds: int, *, is_news: bool) -> None:
        super().__init__(f"too many failures of this {limit.name}, again in {retry_seconds} s")
        self.limit, self.retry_seconds, self.is_news = limit, retry_seconds, is_news


class TooManyAtOnce(Exception):
    """Attempts under way may still use up what *limit* permits; this one was not checked, nor counted."""

    def __init__(self, limit: FailureLimit) -> None:
        super().__init__(f"other attempts of this {limit.name} are under way")
        self.limit = limit


@dataclass
class Attempt:
    """An attempt under way; unless it ``succeed``s, it counts as failed when it ends."""

    is_right: bool = False

    def succeed(self) -> None:
        self.is_right = True


@dataclass(frozen=True)
class CountedAct:
    """A counted act that can be taken back while its window lasts."""

    key: str
    ends: int


class Throttle:
    """The limits over *counts*. *clock*: seconds since 1970; *wait_seconds*: how long an attempt waits."""

    def __init__(
        self,
        counts: Counts,
        *,
        clock: Callable[[], float] = time.time,
        wait_seconds: float = WAIT_SECONDS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._counts, self._clock, self._wait_seconds = counts, clock, wait_seconds
        self._waiting = threading.BoundedSemaphore(most_waiting)
        self._ended, self._endings = threading.Condition(), 0

    @contextmanager
    def attempt(self, counted: Sequence[Counted]) -> Iterator[Attempt]:
        """Hold a place under each of *counted* during the block; what it was counts at the end.

        An attempt that the database kept from being checked counts as nothing.

        Raises:
            TooManyFailures: one of the limits is reached.
            TooManyAtOnce: others hold the places, and too many wait for them, or have waited too long.
        """
        keys, place = _keys(counted), secrets.token_hex(8)
        self._admit(counted, keys, place)
        attempt = Attempt()
        try:
            yield attempt
        except (OperationalError, InterfaceError):
            self._counts.release(keys, place)
            raise
        except BaseException:
            self._end(counted, keys, place, attempt)
            raise
        else:
            self._end(counted, keys, place, attempt)
        finally:
            with self._ended:
                self._endings += 1
                self._ended.notify_all()

    def count(self, limit: FailureLimit, value: str) -> CountedAct:
        """Count an act under *value*, failed or not.

        Raises:
            TooManyFailures: the limit is reached.
        """
        counted = [(limit, value)]
        (key,) = _keys(counted)
        ruling = self._counts.count([key], _most(counted), self._now())
        self._raise_refusal(counted, ruling)
        return CountedAct(key, ruling.ends)

    def take_back(self, act: CountedAct) -> None:
        """Count *act* no longer."""
        self._counts.take_back(act.key, act.ends, self._now())

    def forget(self, counted: Sequence[Counted]) -> list[int]:
        """Forget the failures under *counted*; return how many there were.

        Raises:
            redis.RedisError: Valkey is unreachable.
        """
        return self._counts.forget(_keys(counted), self._now())

    def _admit(self, counted: Sequence[Counted], keys: Sequence[str], place: str) -> None:
        ruling = self._counts.begin(keys, _most(counted), place, self._now())
        if ruling.state == AttemptState.BUSY and self._waiting.acquire(blocking=False):
            try:
                ruling = self._wait(counted, keys, place)
            finally:
                self._waiting.release()
        self._raise_refusal(counted, ruling)

    def _wait(self, counted: Sequence[Counted], keys: Sequence[str], place: str) -> AttemptRuling:
        """Return the ruling as soon as the attempt is admitted or refused, or when it has waited enough."""
        until = time.monotonic() + self._wait_seconds
        while True:
            endings = self._endings  # before asking: an attempt may end meanwhile
            ruling = self._counts.begin(keys, _most(counted), place, self._now())
            left = until - time.monotonic()
            if ruling.state != AttemptState.BUSY or left <= 0:
                return ruling
            with self._ended:
                if self._endings == endings:
                    self._ended.wait(min(left, _ASK_SECONDS))

    def _raise_refusal(self, counted: Sequence[Counted], ruling: AttemptRuling) -> None:
        limit, _ = counted[ruling.at]
        if ruling.state == AttemptState.REFUSED:
            raise TooManyFailures(limit, max(ruling.ends - self._now(), 1), is_news=ruling.is_news)
        if ruling.state == AttemptState.BUSY:
            raise TooManyAtOnce(limit)

    def _end(self, counted: Sequence[Counted], keys: Sequence[str], place: str, attempt: Attempt) -> None:
        if attempt.is_right:
            forgiven = [key for key, (limit, _) in zip(keys, counted, strict=True) if limit.is_personal]
            self._counts.release(keys, place, forgiven)
        else:
            self._counts.fail(keys, place, self._now())

    def _now(self) -> int:
        return int(self._clock())


@cache
def limits() -> Throttle:
    """Return the limits of this process, whose counts all processes share."""
    client = valkey.connect(settings.CELERY_BROKER_URL, within_seconds=ANSWER_SECONDS)
    return Throttle(SharedCounts(ValkeyCounts(client)))


def networks(address: str) -> list[Counted]:
    """Return what an attempt from *address* counts under.

    A provider gives a customer at least a /64 of IPv6 addresses, and often a /48.
    """
    parsed = ip_of(address)
    if isinstance(parsed, IPv6Address):
        return [(NETWORK, str(ipv6_network(parsed, 48))), (ADDRESS, str(ipv6_network(parsed)))]
    return [(ADDRESS, str(parsed or address))]


def _keys(counted: Sequence[Counted]) -> list[str]:
    return [_key(limit, value) for limit, value in counted]


def _most(counted: Sequence[Counted]) -> list[int]:
    return [limit.failures for limit, _ in counted]


def _key(limit: FailureLimit, value: str) -> str:
    digest = hashlib.sha256(value.encode()).hexdigest()[:32]  # of any length, and no name is stored
    prefix = settings.CACHES["default"]["KEY_PREFIX"]
    return f"{prefix}:failures:{limit.name.replace(' ', '-')}:{digest}"
