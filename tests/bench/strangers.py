"""The login page while twelve connections repeat the dearest request of strangers, relative to idle.

Run it with a niceness of 0: hashes of passwords yield to pages by theirs (``monitor.accounts.hashing``).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.test import Client, override_settings

from monitor import pages as all_pages
from monitor.env import ROOT
from tests.bench import web
from tests.bench.attackers import CONNECTIONS, NUMBER, HttpRequest, connection
from tests.bench.base import Result, seconds
from tests.bench.pages import processor_milliseconds
from tests.monitor.api.operations import operations

PAUSE_SECONDS, TRIAL_SECONDS, ATTACK_SECONDS = 10.0, 10.0, 30.0  # the budget is one of ten seconds
CANDIDATES, ROUNDS_OF_ATTACK = 4, 3
BETWEEN_SECONDS = 0.1  # between two requests of the victim, which has a budget, too
QUIET, BUSY = 1.3, ": THE MACHINE WAS BUSY, measure again"
ROUNDS = 2
AS_BY_DEFAULT = {"GRIDCAST_PROCESSOR_SECONDS": "", "GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS": ""}
VICTIM = "127.0.0.2"
ATTACKERS = itertools.count(1)  # each attack has an address of its own, as failed logins are counted longer
CSRF = "x" * 32  # the same in the form and in the cookie, as browsers send it
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def measure() -> list[Result]:
    with override_settings(ALLOWED_HOSTS=["*"]):
        costs = costs_of(Client(), requests())
    return [compared(costs, HttpRequest("/login/"), "login page", 1.5)]


def requests() -> Iterator[HttpRequest]:
    """Yield the requests of strangers: to every page without an argument, and every operation."""
    form = f"csrfmiddlewaretoken={CSRF}&login=nobody-{NUMBER}&password=wrong"
    yield HttpRequest("/login/", "POST", form, {"Content-Type": FORM, "Cookie": f"csrftoken={CSRF}"})
    yield HttpRequest("/nothing/")
    yield HttpRequest("/api/v1/nothing")
    yield HttpRequest("/api/v1/openapi.json")
    patterns = (each for patterns in all_pages.load_all().values() for each in patterns)
    yield from (HttpRequest(f"/{each.pattern}") for each in patterns if "<" not in str(each.pattern))
    for each in operations():
        body = each.changed_body(("unknown",), 1).decode() if each.takes_json else ""
        query = "&".join(f"{name}={value}" for name, value in each.query.items())
        yield HttpRequest(f"{each.path}?{query}", each.method, body, {"Content-Type": JSON})


def costs_of(client: Client, asked: Iterable[HttpRequest]) -> list[tuple[float, HttpRequest]]:
    """Return the milliseconds of processor time of each request, when it is repeated; the dearest first."""
    client.raise_request_exception = False
    logging.disable(logging.CRITICAL)  # most requests are refused
    costs = [(_cost(client, each), each) for each in asked]
    logging.disable(logging.NOTSET)
    return sorted(costs, key=lambda cost: cost[0], reverse=True)


def _cost(client: Client, request: HttpRequest) -> float:
    def ask() -> None:
        kind = request.headers.get("Content-Type", "text/plain")
        answer = client.generic(request.method, request.path, request.body.encode(), kind)
        if answer.streaming:
            b"".join(answer)

    ask()
    return min(processor_milliseconds(ask) for _ in range(ROUNDS))


def compared(costs: list[tuple[float, HttpRequest]], victim: HttpRequest, name: str, target: float) -> Result:
    """Return how much longer *victim* takes while the worst of the dearest of *costs* is repeated.

    A short attack with each of the dearest finds the worst: some are dear only until a limit refuses them.
    Then come ``ROUNDS_OF_ATTACK`` attacks with pauses, so that other load of the machine affects both alike.
    """
    # The log has a line for each refusal.
    with tempfile.TemporaryFile() as log, web.serving("monitor.wsgi", AS_BY_DEFAULT, log) as address:
        timed(address, victim, PAUSE_SECONDS)  # connections and caches
        tried = [
            (1000 * statistics.mean(_attack(address, victim, each, TRIAL_SECONDS).beside), each)
            for _, each in costs[:CANDIDATES]
        ]
        worst = max(tried, key=lambda each: each[0])[1]
        rounds = [_attack(address, victim, worst, ATTACK_SECONDS) for _ in range(ROUNDS_OF_ATTACK)]
    ratios = [statistics.mean(each.beside) / statistics.mean(each.idle) for each in rounds]
    idle = [seconds for each in rounds for seconds in each.idle]
    beside = [seconds for each in rounds for seconds in each.beside]
    answers = sum((each.answers for each in rounds), Counter[str]())
    figures = {
        "mean idle, ms": 1000 * statistics.mean(idle),
        "mean beside them, ms": 1000 * statistics.mean(beside),
        "median beside them / median idle": statistics.median(beside) / statistics.median(idle),
        "smallest ratio of a round": min(ratios),
        "largest ratio of a round": max(ratios),
        "slowest idle / fastest idle" + (BUSY if _spread(rounds) > QUIET else ""): _spread(rounds),
        **{
            f"answers {status} to them a second": count / ATTACK_SECONDS / ROUNDS_OF_ATTACK
            for status, count in answers.items()
        },
        **{f"mean beside {_named(each)}, ms": beside_ms for beside_ms, each in tried},
        **{f"{_named(each)}, ms of processor": cost for cost, each in costs[:12]},
    }
    return Result(
        name=f"{name} beside {CONNECTIONS} connections with {_named(worst)} / idle",
        ratio=statistics.mean(beside) / statistics.mean(idle),
        target=target,
        better="lower",
        figures=figures,
    )


class Round(NamedTuple):
    """Seconds of the victim's requests before and during an attack, and the answers to it by status."""

    idle: list[float]
    beside: list[float]
    answers: Counter[str]


def _attack(address: tuple[str, int], victim: HttpRequest, attack: HttpRequest, for_seconds: float) -> Round:
    idle = timed(address, victim, PAUSE_SECONDS)  # the budget of the attackers is refilled meanwhile
    with attacking(address, attack) as answers:
        beside = timed(address, victim, for_seconds)
    return Round(idle, beside, answers)


def _named(request: HttpRequest) -> str:
    return f"{request.method} {request.path[:60]}"


def _spread(rounds: Sequence[Round]) -> float:
    idle = [statistics.mean(each.idle) for each in rounds]
    return max(idle) / min(idle)


def timed(address: tuple[str, int], request: HttpRequest, for_seconds: float) -> list[float]:
    """Return the seconds that *request* takes, one after the other for a time, with short pauses."""
    took, until = [], time.monotonic() + for_seconds
    with contextlib.closing(connection(address, VICTIM)) as kept:
        while time.monotonic() < until:
            took.append(seconds(lambda: _expect_200(request.send(kept))))
            time.sleep(BETWEEN_SECONDS)
    return took


def _expect_200(status: int) -> None:
    if status != 200:
        raise AssertionError(f"the request that is timed was answered with {status}")


@contextlib.contextmanager
def attacking(address: tuple[str, int], request: HttpRequest) -> Iterator[Counter[str]]:
    """Repeat *request* during the block; yield what then has the number of answers by status."""
    answers: Counter[str] = Counter()
    argv = [sys.executable, "-m", "tests.bench.attackers"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=ROOT, env=os.environ, **pipes) as attackers:  # type: ignore[call-overload]
        attackers.stdin.write(request.line(address, f"127.0.1.{next(ATTACKERS)}"))
        attackers.stdin.flush()
        yield answers
        answers.update(json.loads(attackers.communicate()[0]))
