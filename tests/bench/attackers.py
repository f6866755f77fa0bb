"""Connections that repeat a request without a pause, as a process: ``python -m tests.bench.attackers``.

The first line of the standard input has the address of the server and the request, as JSON. The connections
ignore ``Retry-After``. When the standard input ends, they end, and the statuses of their answers are printed.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

CONNECTIONS = 12
ATTACKER, OTHER = "127.0.0.1", "127.0.0.2"  # two addresses of this host
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class HttpRequest:
    """A request; *body* is text."""

    path: str
    method: str = "GET"
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def send(self, connection: http.client.HTTPConnection) -> int:
        """Send the request and read the answer; return its status."""
        connection.request(self.method, self.path, self.body.encode(), dict(self.headers))
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def line(self, address: tuple[str, int]) -> bytes:
        """Return the line that the attackers read."""
        return json.dumps({"address": address, "request": asdict(self)}).encode() + b"\n"


def connection(address: tuple[str, int], source: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(*address, timeout=TIMEOUT_SECONDS, source_address=(source, 0))


def main() -> None:
    told = json.loads(sys.stdin.readline())
    address, request = tuple(told["address"]), HttpRequest(**told["request"])
    statuses: list[int] = []
    stop = threading.Event()
    threads = [
        threading.Thread(target=_repeat, args=(address, request, stop, statuses.append))
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
    address: tuple[str, int], request: HttpRequest, stop: threading.Event, note: Callable[[int], None]
) -> None:
    with contextlib.closing(connection(address, ATTACKER)) as kept:
        while not stop.is_set():
            try:
                note(request.send(kept))
            except (OSError, http.client.HTTPException):
                kept.close()  # the next request connects again


if __name__ == "__main__":
    main()
