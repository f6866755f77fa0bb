"""Failed logins are counted by what an attacker has many of, and one user has few of."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from django.conf import settings
from django.db import OperationalError

from monitor.core import valkey
from monitor.web.accounts import throttle
from monitor.web.accounts.failure_counts import PLACE_SECONDS, WINDOW_SECONDS, MemoryCounts, ValkeyCounts
from monitor.web.accounts.throttle import (
    ADDRESS,
    KNOWN_BROWSER,
    MOST_WAITING,
    START,
    USER,
    USER_AT_ADDRESS,
    Throttle,
    TooManyAtOnce,
    TooManyFailures,
)
from tests.waiting import eventually

NOON = 1_772_366_400.0
ADA = [(USER, "ada")]


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(clock: Clock) -> Throttle:
    return Throttle(MemoryCounts(), clock=clock)


def fail(limits: Throttle, times: int = 1, counted: list[throttle.Counted] = ADA) -> None:
    for _ in range(times):
        with limits.attempt(counted):
            pass


def succeed(limits: Throttle, counted: list[throttle.Counted] = ADA) -> None:
    with limits.attempt(counted) as attempt:
        attempt.succeed()


def test_the_attempt_after_the_last_allowed_one_is_refused_until_the_window_ends(
    limits: Throttle, clock: Clock
) -> None:
    fail(limits, USER.failures)
    clock.now += 600
    with pytest.raises(TooManyFailures) as refused:
        fail(limits)
    assert refused.value.retry_seconds == WINDOW_SECONDS - 600
    assert refused.value.limit == USER
    clock.now = NOON + WINDOW_SECONDS
    fail(limits)


def test_success_counts_nothing_and_takes_no_other_failure_back(limits: Throttle) -> None:
    """Else an attacker with an account could wipe out failures by a login in between."""
    fail(limits, USER.failures - 1)
    succeed(limits)
    fail(limits)
    with pytest.raises(TooManyFailures):
        fail(limits)


def test_success_in_a_known_browser_forgives_the_mistakes_before(limits: Throttle) -> None:
    laptop = [(KNOWN_BROWSER, "laptop")]
    fail(limits, KNOWN_BROWSER.failures - 1, laptop)
    succeed(limits, laptop)
    fail(limits, KNOWN_BROWSER.failures, laptop)


def test_what_comes_with_a_reached_limit_is_not_counted(limits: Throttle) -> None:
    """A blocked address cannot use up the attempts at an account."""
    address = (ADDRESS, "192.0.2.1")
    fail(limits, ADDRESS.failures, [address])
    for _ in range(USER.failures):
        with pytest.raises(TooManyFailures):
            fail(limits, 1, [*ADA, address])
    assert limits.forget(ADA) == [0]


def test_an_attempt_that_ends_with_an_error_counts_as_failed(limits: Throttle) -> None:
    with pytest.raises(ValueError, match="ours"), limits.attempt(ADA):
        raise ValueError("ours")
    assert limits.forget(ADA) == [1]


def test_an_attempt_that_the_database_kept_from_being_checked_counts_as_nothing(limits: Throttle) -> None:
    for _ in range(USER.failures + 1):
        with pytest.raises(OperationalError), limits.attempt(ADA):
            raise OperationalError("the depot is away")
    assert limits.forget(ADA) == [0]


def test_a_counted_start_is_taken_back(limits: Throttle) -> None:
    acts = [limits.count(START, "192.0.2.1") for _ in range(START.failures)]
    with pytest.raises(TooManyFailures):
        limits.count(START, "192.0.2.1")
    limits.take_back(acts[0])
    limits.count(START, "192.0.2.1")


# Attempts at the same time


def test_an_attempt_waits_for_a_place_and_gets_it_when_another_is_right(limits: Throttle) -> None:
    counted = [(USER_AT_ADDRESS, "ada 192.0.2.1")]
    with ThreadPoolExecutor(1) as pool, ExitStack() as held:
        attempts = [held.enter_context(limits.attempt(counted)) for _ in range(USER_AT_ADDRESS.failures)]
        waiting = pool.submit(succeed, limits, counted)
        assert eventually(lambda: _waiting(limits) == 1)
        for attempt in attempts:
            attempt.succeed()
        held.close()
        waiting.result()
    assert limits.forget(counted) == [0]


def test_an_attempt_that_waits_is_refused_when_all_others_were_wrong(limits: Throttle) -> None:
    counted = [(USER_AT_ADDRESS, "ada 192.0.2.1")]
    with ThreadPoolExecutor(1) as pool, ExitStack() as held:
        for _ in range(USER_AT_ADDRESS.failures):
            held.enter_context(limits.attempt(counted))
        waiting = pool.submit(succeed, limits, counted)
        assert eventually(lambda: _waiting(limits) == 1)
        held.close()
        with pytest.raises(TooManyFailures):
            waiting.result()


def test_an_attempt_that_waits_too_long_counts_as_nothing(clock: Clock) -> None:
    limits = Throttle(MemoryCounts(), clock=clock, wait_seconds=0.0)
    with ExitStack() as held:
        attempts = [held.enter_context(limits.attempt(ADA)) for _ in range(USER.failures)]
        with pytest.raises(TooManyAtOnce):
            fail(limits)
        for attempt in attempts:
            attempt.succeed()
    assert limits.forget(ADA) == [0]


def test_at_most_four_wait_in_a_process_and_further_ones_are_told_at_once(clock: Clock) -> None:
    limits = Throttle(MemoryCounts(), clock=clock, wait_seconds=300.0)
    with ThreadPoolExecutor(MOST_WAITING) as pool, ExitStack() as held:
        attempts = [held.enter_context(limits.attempt(ADA)) for _ in range(USER.failures)]
        waiting = [pool.submit(succeed, limits) for _ in range(MOST_WAITING)]
        assert eventually(lambda: _waiting(limits) == MOST_WAITING)
        for _ in range(3):
            with pytest.raises(TooManyAtOnce):
                fail(limits)
        for attempt in attempts:
            attempt.succeed()
        held.close()
        for each in waiting:
            each.result()
    assert MOST_WAITING == 4


def _waiting(limits: Throttle) -> int:
    return MOST_WAITING - limits._waiting._value


# Over processes


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


def of_this_process() -> Throttle:
    client = valkey.connect(settings.CELERY_BROKER_URL, within_seconds=3.0)
    return Throttle(ValkeyCounts(client), wait_seconds=60.0)


def _check(
    name: str, barrier: threading.Barrier, is_right: bool, outcomes: multiprocessing.Queue[str]
) -> None:
    """Try eight passwords at once; put what becomes of each."""
    limits = of_this_process()

    def attempted() -> str:
        try:
            with limits.attempt([(USER_AT_ADDRESS, name)]) as attempt:
                if is_right:
                    attempt.succeed()
                return "checked"
        except TooManyFailures:
            return "refused"
        except TooManyAtOnce:
            return "busy"

    barrier.wait(60)
    with ThreadPoolExecutor(8) as pool:
        for outcome in [pool.submit(attempted) for _ in range(8)]:
            outcomes.put(outcome.result())


Outcomes = Callable[[bool], list[str]]


@pytest.fixture
def outcomes(name: str) -> Outcomes:
    context = multiprocessing.get_context("fork")

    def of(is_right: bool) -> list[str]:
        barrier, queue = context.Barrier(2), context.Queue()
        processes = [context.Process(target=_check, args=(name, barrier, is_right, queue)) for _ in range(2)]
        for process in processes:
            process.start()
        found = [queue.get(timeout=60) for _ in range(16)]
        for process in processes:
            process.join(60)
        return found

    return of


def test_sixteen_wrong_passwords_in_two_processes_are_checked_five_times(outcomes: Outcomes) -> None:
    found = outcomes(False)
    assert found.count("checked") == USER_AT_ADDRESS.failures
    assert set(found) <= {"checked", "refused", "busy"}


def test_sixteen_right_passwords_in_two_processes_are_never_refused(outcomes: Outcomes) -> None:
    found = outcomes(True)
    assert "refused" not in found
    assert found.count("checked") >= USER_AT_ADDRESS.failures + MOST_WAITING


def test_the_places_of_a_killed_process_end_by_themselves(name: str) -> None:
    counted = [(USER_AT_ADDRESS, name)]
    context = multiprocessing.get_context("fork")
    holds = context.Event()

    def hold() -> None:
        limits = of_this_process()
        with ExitStack() as held:
            for _ in range(USER_AT_ADDRESS.failures):
                held.enter_context(limits.attempt(counted))
            holds.set()
            signal.pause()

    process = context.Process(target=hold)
    process.start()
    assert holds.wait(60)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join(60)
    client = valkey.connect(settings.CELERY_BROKER_URL, within_seconds=3.0)
    clock = Clock(time.time())
    limits = Throttle(ValkeyCounts(client), wait_seconds=0.0, clock=clock)
    with pytest.raises(TooManyAtOnce):
        fail(limits, 1, counted)
    clock.now += PLACE_SECONDS
    fail(limits, USER_AT_ADDRESS.failures, counted)
    assert limits.forget(counted) == [USER_AT_ADDRESS.failures]


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
