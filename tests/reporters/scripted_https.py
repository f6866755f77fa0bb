"""A real HTTPS server whose responses are scripted by a test."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from monitor.testbed.middleware.pki import Authority

CREATED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """A request to the server."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


Script = Callable[["Connection", Request], None]


class Connection:
    """The server's end of a connection that has made a request."""

    def __init__(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self._handler = handler

    def send(self, data: bytes) -> None:
        self._handler.wfile.write(data)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """A whole answer; in the names of *headers*, an underscore is a hyphen."""
        lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
        head = f"HTTP/1.1 {status} Status\r\nContent-Length: {len(body)}\r\n{''.join(lines)}\r\n"
        self.send(head.encode() + body)

    def chunk(self, data: bytes) -> None:
        """A piece of a body that began with CREATED; an empty one ends it."""
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def say(self, *lines: str) -> None:
        """A whole answer, as of a server that makes a third-party copy."""
        self.send(CREATED)
        self.chunk("\n".join(lines).encode())
        self.chunk(b"")

    def wait_for_its_end(self) -> None:
        """Until the other side closes it."""
        with contextlib.suppress(OSError):
            self._handler.rfile.read(1)


@dataclass
class ScriptedServer:
    """Runs *script* for each connection in a thread of its own and records the requests."""

    port: int
    trust: Path
    script: Script
    requests: list[Request] = field(default_factory=list)


@contextlib.contextmanager
def scripted_server(
    authority: Authority, script: Script, configure: Callable[[ssl.SSLContext], None] = lambda _: None
) -> Iterator[ScriptedServer]:
    """Serve https://localhost:PORT, certified by *authority*, until the context ends.

    *configure* changes the TLS context of the server.
    """
    identity = authority.host("localhost", ["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    configure(context)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_COPY(self) -> None:  # by this name it is found
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, dict(self.headers.items()), body)
            served.requests.append(request)
            self.close_connection = True
            with contextlib.suppress(OSError):  # the client may disconnect at any time
                served.script(Connection(self), request)

        do_HEAD = do_POST = do_COPY  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Not to stderr."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        server.socket = context.wrap_socket(server.socket, server_side=True)
        served = ScriptedServer(server.server_port, authority.trust, script)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
