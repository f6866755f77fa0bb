"""Limits of failed attempts to log in, counted in windows of time.

An attempt counts as failed from its beginning, so that many at once cannot pass a limit together; success
takes the count back. A window begins with the first failure and ends by the clock, whatever happens in it, so
no lock lasts longer. And the limits keep a way open for the owner of an account under attack:

- A single address can use up only its own few attempts at an account.
- Many addresses together can use up those of all unknown browsers; a browser in which the user has logged in
  before has attempts of its own, and passkeys and identity providers need none.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from monitor.networks import ip_of, ipv6_network

if TYPE_CHECKING:
    from django.core.cache.backends.base import BaseCache

WINDOW_SECONDS = 900


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

Counted = tuple[FailureLimit, str]


class TooManyFailures(Exception):
    """*limit* is reached until *retry_seconds* from now; *is_news*: it is the first refusal of the window."""

    def __init__(self, limit: FailureLimit, retry_seconds: int, *, is_news: bool) -> None:
        super().__init__(f"too many failures of this {limit.name}, again in {retry_seconds} s")
        self.limit, self.retry_seconds, self.is_news = limit, retry_seconds, is_news


@dataclass(frozen=True)
class Attempt:
    """An attempt that counts as failed until it succeeds."""

    cache: BaseCache
    keys: tuple[tuple[FailureLimit, str], ...]

    def succeed(self) -> None:
        for limit, key in self.keys:
            if limit.is_personal:
                self.cache.delete(key)
            else:
                _count(self.cache, key, -1)


def begin(cache: BaseCache, counted: Sequence[Counted], now: float | None = None) -> Attempt:
    """Count an attempt under each of *counted*; *now* is in seconds since 1970.

    Raises:
        TooManyFailures: one of the limits is reached; those that come later are then not counted.
    """
    time_seconds = int(time.time() if now is None else now)
    keys = []
    for limit, value in counted:
        until = _end_of_window(cache, _key(limit, value), time_seconds)
        key = f"{_key(limit, value)}:{until}"
        failures = _count(cache, key, 1)
        if failures > limit.failures:
            raise TooManyFailures(limit, until - time_seconds, is_news=failures == limit.failures + 1)
        keys.append((limit, key))
    return Attempt(cache, tuple(keys))


def forgive(cache: BaseCache, counted: Sequence[Counted]) -> None:
    """Forget the failures counted under *counted*: the next one begins a window."""
    for limit, value in counted:
        key = _key(limit, value)
        until = cache.get(f"{key}:until")
        # A window that begins in the same second has the same count.
        cache.delete_many([f"{key}:until", f"{key}:{until}"])


def networks(address: str) -> list[Counted]:
    """Return what an attempt from *address* counts under.

    A provider gives a customer at least a /64 of IPv6 addresses, and often a /48.
    """
    parsed = ip_of(address)
    if isinstance(parsed, IPv6Address):
        return [(NETWORK, str(ipv6_network(parsed, 48))), (ADDRESS, str(ipv6_network(parsed)))]
    return [(ADDRESS, str(parsed or address))]


def _key(limit: FailureLimit, value: str) -> str:
    digest = hashlib.sha256(value.encode()).hexdigest()[:32]  # of any length, and no name is stored
    return f"failures:{limit.name.replace(' ', '-')}:{digest}"


def _end_of_window(cache: BaseCache, key: str, now: int) -> int:
    """Return when the current window of *key* ends; begin one if there is none."""
    until = now + WINDOW_SECONDS
    if cache.add(f"{key}:until", until, timeout=WINDOW_SECONDS):
        return until
    current = int(cache.get(f"{key}:until", until))
    if current <= now:
        cache.set(f"{key}:until", until, timeout=WINDOW_SECONDS)
        return until
    return current


def _count(cache: BaseCache, key: str, change: int) -> int:
    cache.add(key, 0, timeout=2 * WINDOW_SECONDS)  # longer than its window: it never ends between the calls
    return cache.incr(key, change)
