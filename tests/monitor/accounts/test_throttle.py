"""Failed logins are counted by what an attacker has many of, and one user has few of."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache as valkey
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache

from monitor.accounts import throttle
from monitor.accounts.throttle import KNOWN_BROWSER, USER, WINDOW_SECONDS, TooManyFailures

NOON = 1_772_366_400.0


@pytest.fixture
def cache() -> BaseCache:
    return LocMemCache(uuid.uuid4().hex, {})


def fail(cache: BaseCache, times: int, now: float = NOON) -> None:
    for _ in range(times):
        throttle.begin(cache, [(USER, "ada")], now)


def test_the_attempt_after_the_last_allowed_one_is_refused_until_the_window_ends(cache: BaseCache) -> None:
    fail(cache, USER.failures)
    with pytest.raises(TooManyFailures) as refused:
        fail(cache, 1, NOON + 600)
    assert refused.value.retry_seconds == WINDOW_SECONDS - 600
    assert refused.value.limit == USER
    fail(cache, 1, NOON + WINDOW_SECONDS)


def test_attempts_during_a_lock_do_not_prolong_it(cache: BaseCache) -> None:
    fail(cache, USER.failures)
    for second in range(1, WINDOW_SECONDS, 100):
        with pytest.raises(TooManyFailures):
            fail(cache, 1, NOON + second)
    fail(cache, 1, NOON + WINDOW_SECONDS)


def test_only_the_first_refusal_of_a_window_is_news(cache: BaseCache) -> None:
    fail(cache, USER.failures)
    news = []
    for _ in range(3):
        with pytest.raises(TooManyFailures) as refused:
            fail(cache, 1)
        news.append(refused.value.is_news)
    assert news == [True, False, False]


def test_success_takes_back_its_own_count_and_no_other(cache: BaseCache) -> None:
    """Else an attacker with an account could wipe out failures by a login in between."""
    fail(cache, USER.failures - 1)
    throttle.begin(cache, [(USER, "ada")], NOON).succeed()
    fail(cache, 1)
    with pytest.raises(TooManyFailures):
        fail(cache, 1)


def test_success_in_a_known_browser_forgives_the_mistakes_before(cache: BaseCache) -> None:
    for _ in range(KNOWN_BROWSER.failures - 1):
        throttle.begin(cache, [(KNOWN_BROWSER, "laptop")], NOON)
    throttle.begin(cache, [(KNOWN_BROWSER, "laptop")], NOON).succeed()
    for _ in range(KNOWN_BROWSER.failures):
        throttle.begin(cache, [(KNOWN_BROWSER, "laptop")], NOON)


def test_what_comes_after_a_reached_limit_is_not_counted(cache: BaseCache) -> None:
    """A blocked address cannot use up the attempts at an account."""
    address = (throttle.ADDRESS, "192.0.2.1")
    for _ in range(throttle.ADDRESS.failures):
        throttle.begin(cache, [address], NOON)
    for _ in range(USER.failures):
        with pytest.raises(TooManyFailures):
            throttle.begin(cache, [address, (USER, "ada")], NOON)
    fail(cache, USER.failures)


def test_attempts_at_the_same_time_pass_no_limit_together() -> None:
    """Valkey counts atomically."""
    name = uuid.uuid4().hex

    def attempt(_: int) -> bool:
        try:
            throttle.begin(valkey, [(USER, name)], NOON)
        except TooManyFailures:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(USER.failures + 30))) == USER.failures


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", ["192.0.2.7"]),
        ("::ffff:192.0.2.7", ["192.0.2.7"]),
        ("2001:db8:1:2:3::4", ["2001:db8:1::/48", "2001:db8:1:2::/64"]),
        ("not an address", ["not an address"]),
    ],
)
def test_an_ipv6_address_counts_for_the_network_of_its_customer(address: str, counted: list[str]) -> None:
    assert [value for _, value in throttle.networks(address)] == counted
