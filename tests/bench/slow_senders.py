"""Answer forecasts while a hundred slow senders are attached, relative to none."""

from __future__ import annotations

import contextlib
import socket
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from monitor.models import Series
from tests.bench import web
from tests.bench.base import Result, seconds
from tests.bench.forecasts import issue_token, load

SENDERS = 100  # more than the web server has threads
CLIENTS = 8
REQUESTS = 2_000  # per round
ROUNDS = 5
SLOW = (
    b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nusername=",
    b"POST /api/v1/reports HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
)


def measure() -> list[Result]:
    load()
    names = Series.objects.order_by("?").values_list("name", flat=True)
    paths = list(islice(cycle(f"/api/v1/forecasts?series={name}" for name in names), REQUESTS))
    with web.serving("monitor.wsgi") as address, ThreadPoolExecutor(CLIENTS) as clients:
        ask = web.asking(address, issue_token())

        def p99() -> float:
            took = sorted(clients.map(lambda path: seconds(lambda: ask(path)), paths))
            return took[int(0.99 * len(took))]

        p99()  # connections and caches
        pairs = []
        for _ in range(ROUNDS):
            without = p99()
            with slow_senders(address):
                pairs.append((without, p99()))
    without, beside = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [
        Result(
            name=f"p99 of forecasts beside {SENDERS} slow senders / without",
            ratio=beside / without,
            target=2.0,
            better="lower",
            figures={"p99 beside them, ms": beside * 1000, "p99 without, ms": without * 1000},
        )
    ]


@contextlib.contextmanager
def slow_senders(address: tuple[str, int]) -> Iterator[None]:
    """Attach clients that have sent a part of a request, and send nothing more in the block."""
    with contextlib.ExitStack() as stack:
        for request in islice(cycle(SLOW), SENDERS):
            sender = stack.enter_context(socket.create_connection(address))
            sender.sendall(request)
        yield
