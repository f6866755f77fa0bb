"""A proxy before a provider: whole by itself, with faults that are switched on by path."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# How an answer arrives: all of it; half of it; spaces now and then, until the proxy ends; never; as a reset.
WHOLE, CUT, TRICKLES, HANGS, RESETS = "whole", "cut", "trickles", "hangs", "resets"
RECEIVED = "/received-by-client"  # answered by the proxy: what the provider posts to a client
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True)
class ProxyAnswer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    delivery: str = WHOLE


Fault = Callable[[ProxyAnswer], ProxyAnswer]


def delivered(delivery: str) -> Fault:
    return lambda honest: replace(honest, delivery=delivery)


def instead(status: int, body: bytes, **headers: str) -> Fault:
    """Send another answer than the provider's."""
    return lambda _: ProxyAnswer(status, tuple(headers.items()), body)


def changed(change: Callable[[Any], Any]) -> Fault:
    """Send what *change* makes of the JSON document in the answer."""
    return lambda honest: replace(honest, body=json.dumps(change(json.loads(honest.body))).encode())


def with_members(**members: Any) -> Fault:
    """Change members of the document; None leaves one out."""
    return changed(
        lambda honest: {name: value for name, value in {**honest, **members}.items() if value is not None}
    )


@dataclass
class FaultProxy:
    """Passes requests on to *target*, a port of this host, with the ``Host`` that the client named.

    Attributes:
        faults: by path, what is made of an answer before it is sent.
        asked: how often each path was asked for.
        received: the bodies that the provider has posted to ``RECEIVED``.
    """

    port: int
    target: int = 0
    faults: dict[str, Fault] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    received: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def passed_on(self, method: str, target: str, headers: dict[str, str], body: bytes) -> ProxyAnswer:
        connection = http.client.HTTPConnection("127.0.0.1", self.target)
        with contextlib.closing(connection):
            connection.request(method, target, body or None, headers)
            answer = connection.getresponse()
            kept = tuple(pair for pair in answer.getheaders() if pair[0].lower() not in _HOP_BY_HOP)
            return ProxyAnswer(answer.status, kept, answer.read())


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultProxy

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.proxy.asked[path] += 1
        if path == RECEIVED:
            self.proxy.received.append(body)
            return self._send(ProxyAnswer(200, (), b""))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        answer = self.proxy.passed_on(self.command, self.path, headers, body)
        fault = self.proxy.faults.get(path)
        return self._send(fault(answer) if fault else answer)

    def do_POST(self) -> None:
        self.do_GET()

    def _send(self, answer: ProxyAnswer) -> None:
        if answer.delivery == HANGS:
            self.proxy.over.wait()
            return
        if answer.delivery == RESETS:
            # Without time to linger, closing sends a reset; the server would end the stream first.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        trickles = answer.delivery == TRICKLES
        length = 1_000_000 if trickles else len(answer.body)
        self.send_response(answer.status)
        for name, value in (*answer.headers, ("Content-Length", str(length))):
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):  # the client reads no more
            while trickles and not self.proxy.over.wait(0.05):
                self.wfile.write(b" ")
            self.wfile.write(answer.body[: length // 2] if answer.delivery == CUT else answer.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def running_proxy() -> Iterator[FaultProxy]:
    """Run a proxy without a target; requests before it has one are refused by the provider's host."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        proxy = handler.proxy = FaultProxy(server.server_port)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            server.shutdown()
            thread.join()
