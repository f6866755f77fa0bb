"""A server that does what a test says with each connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

Script = Callable[[socket.socket, bytes], None]


class RawServer:
    """Reads the head of a request from each connection, and leaves the connection to *script*."""

    def __init__(self, script: Script, context: ssl.SSLContext | None = None) -> None:
        self.heads: list[bytes] = []
        self.stopped = threading.Event()
        self._script, self._context = script, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:  # closed
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self.stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            secure = self._context.wrap_socket(connection, server_side=True) if self._context else connection
            with secure:
                head = read_head(secure)
                self.heads.append(head)
                self._script(secure, head)
                secure.shutdown(socket.SHUT_WR)
                secure.settimeout(30)
                while secure.recv(65536):  # closing with unread data would reset the connection
                    pass


def read_head(connection: socket.socket) -> bytes:
    """Return what arrives up to the empty line; a body stays unread, as far as it was not sent with it."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            break
        head += piece
    return head


@contextlib.contextmanager
def raw_server(script: Script, context: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    server = RawServer(script, context)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer; in the names of *headers*, an underscore is a hyphen."""
    lines = [f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items()]
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{''.join(lines)}\r\n".encode() + body
