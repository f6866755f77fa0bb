"""Connections that repeat a request without a pause, as a process: ``python -m tests.bench.attackers``.

The first line of the standard input has the address of the server, the request, and the address that it comes
from, as JSON. The connections
ignore ``Retry-After``. When the standard input ends, they end, and the statuses of their answers are printed.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

CONNECTIONS = 12
NUMBER = "{number}"  # in a body: that of the request
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class HttpRequest:
    """A request; *body* is text, in which ``NUMBER`` is replaced."""

    path: str
    method: str = "GET"
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.method, self.path, self.body

    def send(self, connection: http.client.HTTPConnection, number: int = 0) -> int:
        """Send the request and read the answer; return its status."""
        body = self.body.replace(NUMBER, str(number)).encode()
        connection.request(self.method, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def line(self, address: tuple[str, int], source: str) -> bytes:
        """Return the line that the attackers read."""
        told = {"address": address, "request": asdict(self), "source": source}
        return json.dumps(told).encode() + b"\n"


def connection(address: tuple[str, int], source: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS, source_address=(source, 0))


def main() -> None:
    told = json.loads(sys.stdin.readline())
    address, request = tuple(told["address"]), HttpRequest(**told["request"])
    statuses: list[int] = []
    numbers = itertools.count()
    stop = threading.Event()

    def send(kept: http.client.HTTPConnection) -> int:
        return request.send(kept, next(numbers))

    threads = [
        threading.Thread(
            target=_repeat, args=(connection(address, told["source"]), send, stop, statuses.append)
        )
        for _ in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    print(json.dumps(Counter(statuses)))
    for thread in threads:
        thread.join()


def _repeat(
    connection: http.client.HTTPConnection,
    send: Callable[[http.client.HTTPConnection], int],
    stop: threading.Event,
    note: Callable[[int], None],
) -> None:
    with contextlib.closing(connection):
        while not stop.is_set():
            try:
                note(send(connection))
            except (OSError, http.client.HTTPException):
                connection.close()  # the next request connects again


if __name__ == "__main__":
    main()
