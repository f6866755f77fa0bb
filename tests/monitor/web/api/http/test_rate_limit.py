"""Requests of a caller are counted over all processes, and by each process if the counting server is away."""

from __future__ import annotations

from collections import Counter

import pytest
import redis

from monitor.web.api.http.rate_limit import WINDOW_SECONDS, RateLimit

LIMIT = 1000


class Clock:
    seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


class Server:
    """The totals of all processes; *is_away*: it cannot be reached."""

    def __init__(self) -> None:
        self.totals: Counter[tuple[str, int]] = Counter()
        self.calls = 0
        self.is_away = False

    def add(self, caller: str, window: int, count: int) -> int:
        self.calls += 1
        if self.is_away:
            raise redis.ConnectionError("refused")
        self.totals[caller, window] += count
        return self.totals[caller, window]


@pytest.fixture
def server() -> Server:
    return Server()


def process(server: Server, clock: Clock) -> RateLimit:
    return RateLimit(server, lambda _: LIMIT, clock)


def allowed(limit: RateLimit, requests: int, caller: str = "token:1") -> int:
    return sum(not limit.count(caller).is_exceeded for _ in range(requests))


def test_a_caller_gets_as_many_answers_as_the_limit(server: Server) -> None:
    limit = process(server, Clock())
    assert allowed(limit, LIMIT) == LIMIT
    assert allowed(limit, 50) == 0
    assert allowed(limit, 50, "token:2") == 50


def test_the_next_window_begins_with_the_whole_limit(server: Server) -> None:
    clock = Clock()
    limit = process(server, clock)
    allowed(limit, LIMIT + 1)
    assert limit.count("token:1").reset_seconds == WINDOW_SECONDS
    clock.seconds += WINDOW_SECONDS
    assert allowed(limit, LIMIT) == LIMIT


def test_two_processes_share_the_limit_within_a_batch(server: Server) -> None:
    clock = Clock()
    first, second = process(server, clock), process(server, clock)
    answered = sum(allowed(limit, 100) for _ in range(10) for limit in (first, second))
    assert LIMIT <= answered <= LIMIT * 1.05


def test_most_requests_ask_no_server(server: Server) -> None:
    allowed(process(server, Clock()), LIMIT)
    assert server.calls == 100


def test_without_the_server_a_process_counts_for_itself_and_asks_seldom(server: Server) -> None:
    clock = Clock()
    server.is_away = True
    limit = process(server, clock)
    assert allowed(limit, LIMIT + 50) == LIMIT
    assert server.calls == 1
    clock.seconds += WINDOW_SECONDS
    server.is_away = False
    assert allowed(limit, LIMIT) == LIMIT
    assert server.totals["token:1", int(clock.seconds) // WINDOW_SECONDS] == LIMIT


def test_callers_of_earlier_windows_are_forgotten(server: Server) -> None:
    clock = Clock()
    limit = process(server, clock)
    for caller in range(25_000):
        clock.seconds += 0.01
        limit.count(f"address:{caller}")
    assert len(limit._counts) <= 11_000
