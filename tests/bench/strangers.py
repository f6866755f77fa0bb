"""The login page while twelve connections repeat the dearest request of strangers, relative to idle.

The grid is that of ``neighbours``, with all sites and all suites but one on the public page. Candidates are
all pages and downloads, with names that exist, and all operations of the API. It takes ten minutes on two
slow cores.

Run it with a niceness of 0: hashes of passwords yield to pages by theirs (``monitor.web.accounts.hashing``).
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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import connection as depot
from django.test import Client, override_settings
from django.urls import Resolver404, resolve

from monitor.core.env import ROOT
from tests.bench import candidates, web
from tests.bench.attackers import CONNECTIONS, NUMBER, HttpRequest, connection
from tests.bench.base import Result, seconds
from tests.bench.pages import processor_milliseconds
from tests.monitor.web.api.operations import operations

PAUSE_SECONDS, ATTACK_SECONDS = 10.0, 30.0  # the budget is one of ten seconds
TRIAL_PAUSE_SECONDS, TRIAL_SECONDS = 5.0, 10.0
CANDIDATES, ROUNDS_OF_ATTACK = 10, 3  # attacks that are tried, of which the worst is repeated
AGAIN, SHOWN = 40, 20  # of the dearest requests
BETWEEN_SECONDS = 0.1  # between two requests of the victim
STRANGER_REST = 30.0  # durations of a request between two: strangers may use a twentieth of a processor
QUIET, BUSY = 1.3, ": THE MACHINE WAS BUSY, measure again"
ROUNDS = 2
AS_BY_DEFAULT = {"GRIDCAST_PROCESSOR_SECONDS": "", "GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS": ""}
VICTIM = "127.0.0.2"
ATTACKERS = itertools.count(1)  # each attack has an address of its own, as failed logins are counted longer
MEASURED = itertools.count()
SITES, SERIES = 101, 50  # no divisor in common with the signatures: an incident of each at each site
ALWAYS = ("public/", "public/badges/sites/<slug:name>.svg")  # kept for a minute, dear at first
NOTHING = ("/nothing/", "/api/v1/nothing")
CSRF = "x" * 32  # the same in the form and in the cookie, as browsers send it
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def measure() -> list[Result]:
    viewer = candidates.load(SITES, SERIES)
    with override_settings(ALLOWED_HOSTS=["*"]):
        costs = costs_of(Client(), requests(viewer))
    return [compared(costs, HttpRequest("/login/"), "login page", 1.5, always=ALWAYS, rest=STRANGER_REST)]


def requests(viewer: User) -> Iterator[HttpRequest]:
    """Yield the requests of strangers: to every page and operation about something that exists.

    Operations that take JSON get a body with an unknown key, and one with very many.
    """
    names = candidates.Names.of(viewer)
    form = f"csrfmiddlewaretoken={CSRF}&login=nobody-{NUMBER}&password=wrong"
    yield HttpRequest("/login/", "POST", form, {"Content-Type": FORM, "Cookie": f"csrftoken={CSRF}"})
    yield from map(HttpRequest, (*NOTHING, "/api/v1/openapi.json"))
    yield from candidates.of_pages(names)
    for each in operations():
        bodies = [""]
        if each.takes_json:
            bodies = [each.changed_body(("unknown",), 1).decode(), json.dumps(candidates.UNKNOWN)]
        address = f"{names.path_of(each)}?{urlencode(each.query)}"
        yield from (HttpRequest(address, each.method, body, {"Content-Type": JSON}) for body in bodies)


class Cost(NamedTuple):
    """The milliseconds of processor time of a request when it is repeated, and when it was sent first."""

    milliseconds: float
    first: float
    status: int
    request: HttpRequest


def costs_of(client: Client, asked: Iterable[HttpRequest]) -> list[Cost]:
    """Return what each request costs, the dearest first; the ``AGAIN`` dearest are measured again.

    Raises AssertionError: a request is answered as if its object did not exist, or with an error.
    """
    with depot.cursor() as cursor:  # the time of parallel workers would not count
        cursor.execute("SET max_parallel_workers_per_gather = 0")
    client.raise_request_exception = False
    logging.disable(logging.CRITICAL)  # many requests are refused
    costs = [_cost(client, each) for each in {each.key: each for each in asked}.values()]
    wrong = candidates.unexpected((each.status, each.request) for each in costs)
    if wrong:
        raise AssertionError("unexpected answers:\n" + "\n".join(wrong))
    costs.sort(key=_milliseconds, reverse=True)
    again = [_repeated(client, each) for each in costs[:AGAIN]]
    logging.disable(logging.NOTSET)
    return sorted((*again, *costs[AGAIN:]), key=_milliseconds, reverse=True)


def _milliseconds(cost: Cost) -> float:
    return cost.milliseconds


def _cost(client: Client, request: HttpRequest) -> Cost:
    statuses: list[int] = []
    body = request.body.replace(NUMBER, f"measured-{next(MEASURED)}").encode()

    def ask() -> None:
        kind = request.headers.get("Content-Type", "text/plain")
        answer = client.generic(request.method, request.path, body, kind)
        if answer.streaming:
            b"".join(answer)
        statuses.append(answer.status_code)

    took = processor_milliseconds(ask)
    return Cost(took, took, statuses[0], request)


def _repeated(client: Client, cost: Cost) -> Cost:
    return cost._replace(milliseconds=min(_cost(client, cost.request).milliseconds for _ in range(ROUNDS)))


def dearest(costs: Sequence[Cost], always: Collection[str]) -> list[Cost]:
    """Return the ``CANDIDATES`` dearest of *costs*, one of each route, and those of the routes *always*."""
    by_route: dict[str, Cost] = {}
    for each in costs:
        by_route.setdefault(f"{each.request.method} {_route(each.request)}", each)
    chosen = list(by_route.values())
    return [*chosen[:CANDIDATES], *(each for each in chosen[CANDIDATES:] if _route(each.request) in always)]


def _route(request: HttpRequest) -> str:
    try:
        return resolve(request.path.partition("?")[0]).route
    except Resolver404:
        return ""


def compared(
    costs: Sequence[Cost],
    victim: HttpRequest,
    name: str,
    target: float,
    *,
    attack_of: Callable[[HttpRequest], HttpRequest] = lambda request: request,
    always: Collection[str] = (),
    rest: float = 0.0,
) -> Result:
    """Return how much longer *victim* takes while the worst of the dearest of *costs* is repeated.

    A short attack with each of the dearest finds the worst: some are dear only until a limit refuses them.
    Then come ``ROUNDS_OF_ATTACK`` attacks with pauses, so that other load of the machine affects both alike.
    *attack_of* returns the request of a new attacker. The routes *always* are tried however cheap they are.
    The victim, which has a budget, too, rests between its requests for *rest* times the fastest of them.
    """
    tried: list[tuple[Round, HttpRequest]] = []
    # The log has a line for each refusal.
    with tempfile.TemporaryFile() as log, web.serving("monitor.wsgi", AS_BY_DEFAULT, log) as address:
        timed(address, victim, PAUSE_SECONDS, rest)  # connections and caches
        for cost in dearest(costs, always):
            trial = _attack(
                address, victim, attack_of(cost.request), TRIAL_PAUSE_SECONDS, TRIAL_SECONDS, rest
            )
            _check_answers(cost, trial.answers)
            tried.append((trial, cost.request))
        worst = max(tried, key=lambda each: each[0].ratio)[1]
        attack = attack_of(worst)
        rounds = [
            _attack(address, victim, attack, PAUSE_SECONDS, ATTACK_SECONDS, rest)
            for _ in range(ROUNDS_OF_ATTACK)
        ]
    ratios = [each.ratio for each in rounds]
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
        "candidates": len(costs),
        **{
            f"answers {status} to them a second": count / ATTACK_SECONDS / ROUNDS_OF_ATTACK
            for status, count in answers.items()
        },
        **{f"beside {_named(each)} / idle, at first": trial.ratio for trial, each in tried},
        **{f"{_named(each.request)}, ms of processor": each.milliseconds for each in costs[:SHOWN]},
        **{f"{_named(each.request)}, ms of processor at first": each.first for each in costs[:SHOWN]},
    }
    return Result(
        name=f"{name} beside {CONNECTIONS} connections with {_named(worst)} / idle",
        ratio=statistics.mean(beside) / statistics.mean(idle),
        target=target,
        better="lower",
        figures=figures,
    )


def _check_answers(cost: Cost, answers: Counter[str]) -> None:
    """Raise AssertionError unless attackers got the measured status, or are refused for a time."""
    other = set(answers) - {str(cost.status), "429", "503"}
    if other:
        raise AssertionError(f"{_named(cost.request)}: answered with {cost.status}, attackers with {other}")


class Round(NamedTuple):
    """Seconds of the victim's requests before and during an attack, and the answers to it by status."""

    idle: list[float]
    beside: list[float]
    answers: Counter[str]

    @property
    def ratio(self) -> float:
        return statistics.mean(self.beside) / statistics.mean(self.idle)


def _attack(
    address: tuple[str, int],
    victim: HttpRequest,
    attack: HttpRequest,
    pause: float,
    for_seconds: float,
    rest: float,
) -> Round:
    idle = timed(address, victim, pause, rest)  # the budget of the attackers is refilled meanwhile
    with attacking(address, attack) as answers:
        beside = timed(address, victim, for_seconds, rest)
    return Round(idle, beside, answers)


def _named(request: HttpRequest) -> str:
    length = f" with {len(request.body)} bytes" if request.body else ""
    return f"{request.method} {request.path[:80]}{length}"


def _spread(rounds: Sequence[Round]) -> float:
    idle = [statistics.mean(each.idle) for each in rounds]
    return max(idle) / min(idle)


def timed(address: tuple[str, int], request: HttpRequest, for_seconds: float, rest: float) -> list[float]:
    """Return the seconds that *request* takes, one after the other for a time, with pauses."""
    took: list[float] = []
    until = time.monotonic() + for_seconds
    with contextlib.closing(connection(address, VICTIM)) as kept:
        while time.monotonic() < until:
            took.append(seconds(lambda: _expect_200(request.send(kept))))
            time.sleep(max(BETWEEN_SECONDS, rest * min(took)))  # the pace of the load; it waits for nothing
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
