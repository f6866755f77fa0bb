"""Pages and API while a hundred visitors log in at a provider that hangs, relative to one that answers."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import statistics
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from monitor.models import ProviderMetadata
from tests.bench import web
from tests.bench.attackers import connection
from tests.bench.base import Result, seconds
from tests.bench.forecasts import issue_token
from tests.monitor.web.accounts.provider.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    HANGS,
    TRICKLES,
    OpenIdProvider,
    running_provider,
)

VISITORS, INTERVAL_SECONDS = 100, 1.0
ROUND_SECONDS, ROUNDS = 15.0, 3
SETTLE_SECONDS = 6.0  # until the threads that wait for the provider are free again
BETWEEN_SECONDS = 0.01  # between two requests that are measured
DISCOVERY = "/realm/.well-known/openid-configuration"
REFUSED = 400, b'{"error": "invalid_grant"}'  # at once: no visitor has a code
ANSWERS = "answers at once"
KINDS: Mapping[str, Mapping[str, tuple[int, bytes] | str]] = {
    ANSWERS: {"/token": REFUSED},
    "hangs": {"/token": HANGS},
    "trickles": {"/token": TRICKLES},
    "hangs before its first answer": {DISCOVERY: HANGS},
}
TARGET = 2.0
NETWORKS = itertools.count(1)  # of the visitors of each round


def measure() -> list[Result]:
    token = issue_token()
    with (
        tempfile.TemporaryFile() as log,  # it has a line for each refusal
        running_provider() as provider,
        web.serving("monitor.wsgi", variables(provider), log) as address,
    ):
        asked = measured(address, token)
        for ask in asked.values():
            ask()
        p99s: dict[tuple[str, str], list[float]] = defaultdict(list)
        statuses: dict[str, Counter[int]] = defaultdict(Counter)
        for kind in list(KINDS) * ROUNDS:
            if DISCOVERY in KINDS[kind]:
                ProviderMetadata.objects.all().delete()
            provider.answers = dict(KINDS[kind])
            with visiting(address, statuses[kind]):
                for name, value in p99s_of(asked).items():
                    p99s[kind, name].append(value)
            time.sleep(SETTLE_SECONDS)
    return [compared(kind, name, p99s, statuses) for kind in KINDS if kind != ANSWERS for name in asked]


def variables(provider: OpenIdProvider) -> Mapping[str, str]:
    return {
        "GRIDCAST_OIDC_URL": provider.issuer,
        "GRIDCAST_OIDC_CLIENT_ID": CLIENT_ID,
        "GRIDCAST_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "GRIDCAST_OIDC_ROLES": "viewer=a",
    }


def measured(address: tuple[str, int], token: str) -> Mapping[str, Callable[[], object]]:
    ask = web.asking(address, token)
    paths = {"/readyz": "/readyz", "the login page": "/login/", "the API": "/api/v1/me"}
    return {name: partial(ask, path) for name, path in paths.items()}


def p99s_of(asked: Mapping[str, Callable[[], object]]) -> Mapping[str, float]:
    """Return the 99th percentile of the seconds of each request, all repeated for a round at once."""
    took: dict[str, list[float]] = {name: [] for name in asked}
    until = time.monotonic() + ROUND_SECONDS

    def repeat(name: str) -> None:
        while time.monotonic() < until:
            took[name].append(seconds(asked[name]))
            time.sleep(BETWEEN_SECONDS)

    threads = [threading.Thread(target=repeat, args=[name]) for name in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: sorted(values)[int(0.99 * len(values))] for name, values in took.items()}


@contextlib.contextmanager
def visiting(address: tuple[str, int], statuses: Counter[int]) -> Iterator[None]:
    """Have each visitor log in once an interval during the block; starts are limited by address."""
    over, network = threading.Event(), f"127.1.{next(NETWORKS)}"

    def visit(number: int) -> None:
        if over.wait(INTERVAL_SECONDS * number / VISITORS):
            return
        with contextlib.closing(connection(address, f"{network}.{number + 1}")) as kept:
            while not over.is_set():
                began = time.monotonic()
                with contextlib.suppress(OSError, http.client.HTTPException):
                    statuses[log_in(kept)] += 1
                over.wait(max(INTERVAL_SECONDS - (time.monotonic() - began), 0.0))

    threads = [threading.Thread(target=visit, args=[number]) for number in range(VISITORS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def log_in(kept: http.client.HTTPConnection) -> int:
    """Start a login, and come back with a code; return the status of the last answer."""
    kept.request("GET", "/login/sso/")
    start = kept.getresponse()
    start.read()
    if start.status != http.HTTPStatus.FOUND:
        return start.status
    at = urlsplit(start.headers["Location"])
    back = {"code": "a", "state": parse_qs(at.query)["state"][0], "iss": f"{at.scheme}://{at.netloc}/realm"}
    cookies = SimpleCookie("; ".join(start.headers.get_all("Set-Cookie", [])))
    header = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())
    kept.request("GET", f"/login/sso/callback/?{urlencode(back)}", headers={"Cookie": header})
    answer = kept.getresponse()
    answer.read()
    return answer.status


def compared(
    kind: str, name: str, p99s: Mapping[tuple[str, str], list[float]], statuses: Mapping[str, Counter[int]]
) -> Result:
    beside, reference = (statistics.median(p99s[each, name]) for each in (kind, ANSWERS))
    return Result(
        name=f"p99 of {name} beside {VISITORS} logins a second, provider {kind} / {ANSWERS}",
        ratio=beside / reference,
        target=TARGET,
        better="lower",
        figures={
            "p99 beside it, ms": 1000 * beside,
            "p99 with one that answers, ms": 1000 * reference,
            **{f"answers {status} to them": float(count) for status, count in statuses[kind].items()},
            **{f"{status} with one that answers": float(n) for status, n in statuses[ANSWERS].items()},
        },
    )
