"""A real HTTP proxy that opens tunnels by CONNECT, as at sites without a route to the world."""

from __future__ import annotations

import contextlib
import http.server
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Tunnel:
    """*requests* are the addresses that clients asked for, *credentials* their proofs."""

    port: int
    requests: list[str] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def tunnel(expected_credentials: str = "") -> Iterator[Tunnel]:
    """Serve as a proxy; with *expected_credentials*, a header of basic authentication, ask for them."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            opened.requests.append(self.path)
            credentials = self.headers.get("Proxy-Authorization", "")
            opened.credentials.append(credentials)
            if credentials != expected_credentials:
                self.send_error(407)
                return
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                with contextlib.suppress(ConnectionError):  # either end may reset the connection
                    _relay(self.connection, server)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Not to stderr."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True
        proxy.block_on_close = False
        opened = Tunnel(proxy.server_port)
        thread = threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield opened
        finally:
            proxy.shutdown()
            thread.join()


def _relay(left: socket.socket, right: socket.socket) -> None:
    while True:
        for ready in select.select([left, right], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            (right if ready is left else left).sendall(data)
