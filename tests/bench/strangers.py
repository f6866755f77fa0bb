"""The login page while twelve connections repeat the dearest request of strangers, relative to idle."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

from django.test import Client, override_settings

from monitor import pages as all_pages
from monitor.env import ROOT
from tests.bench import web
from tests.bench.attackers import CONNECTIONS, OTHER, HttpRequest, connection
from tests.bench.base import Result, seconds
from tests.bench.pages import processor_milliseconds
from tests.monitor.api.operations import operations

SECONDS = 30.0  # of an attack: three windows of the budget
ROUNDS = 2
AS_BY_DEFAULT = {"GRIDCAST_PROCESSOR_SECONDS": "", "GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS": ""}
CSRF = "x" * 32  # the same in the form and in the cookie, as browsers send it
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def measure() -> list[Result]:
    with override_settings(ALLOWED_HOSTS=["*"]):
        costs = costs_of(Client(), requests())
    return [compared(costs, HttpRequest("/login/"), "login page", 1.5)]


def requests() -> Iterator[HttpRequest]:
    """Yield the requests of strangers: to every page without an argument, and every operation."""
    form = f"csrfmiddlewaretoken={CSRF}&login=nobody&password=wrong"
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
    """Return how much longer *victim* takes while the dearest of *costs* is repeated."""
    attack = costs[0][1]
    with web.serving("monitor.wsgi", AS_BY_DEFAULT) as address:
        timed(address, victim, 3.0)  # connections and caches
        idle = timed(address, victim, SECONDS / 3)
        with attacking(address, attack) as answers:
            beside = timed(address, victim, SECONDS)
    figures = {
        "median idle, ms": 1000 * statistics.median(idle),
        "median beside them, ms": 1000 * statistics.median(beside),
        "mean beside them / mean idle": statistics.mean(beside) / statistics.mean(idle),
        **{f"answers {status} to them a second": count / SECONDS for status, count in answers.items()},
    }
    dear = {f"{each.method} {each.path[:60]}, ms of processor": cost for cost, each in costs[:12]}
    return Result(
        name=f"{name} beside {CONNECTIONS} connections with {attack.method} {attack.path[:60]} / idle",
        ratio=statistics.median(beside) / statistics.median(idle),
        target=target,
        better="lower",
        figures=figures | dear,
    )


def timed(address: tuple[str, int], request: HttpRequest, for_seconds: float) -> list[float]:
    """Return the seconds that *request* takes, one after the other for a time."""
    took, until = [], time.monotonic() + for_seconds
    with contextlib.closing(connection(address, OTHER)) as kept:
        while time.monotonic() < until:
            took.append(seconds(lambda: _expect_200(request.send(kept))))
    return took


def _expect_200(status: int) -> None:
    if status != 200:
        raise AssertionError(f"the request that is timed was answered with {status}")


@contextlib.contextmanager
def attacking(address: tuple[str, int], request: HttpRequest) -> Iterator[dict[str, int]]:
    """Repeat *request* during the block; yield a mapping that then has the number of answers by status."""
    answers: dict[str, int] = {}
    argv = [sys.executable, "-m", "tests.bench.attackers"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=ROOT, env=os.environ, **pipes) as attackers:  # type: ignore[call-overload]
        attackers.stdin.write(request.line(address))
        attackers.stdin.flush()
        yield answers
        answers.update(json.loads(attackers.communicate()[0]))
