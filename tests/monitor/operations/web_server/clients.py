"""A web server of its own for a test, and clients that are slow."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from monitor.core.env import ROOT

SECONDS = 300.0  # after which a client gives up: a busy machine takes a minute to start the whole service
THREADS = 4  # of the web server of a test
MANY = 40  # more than the web server has threads


@dataclass(frozen=True)
class Server:
    address: tuple[str, int]

    def connect(self, *, reads_bytes: int | None = None) -> socket.socket:
        """Return a connection; with *reads_bytes*, it buffers no more than about that."""
        client = socket.socket()
        client.settimeout(SECONDS)
        if reads_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, reads_bytes)
        try:
            client.connect(self.address)
        except OSError:
            client.close()
            raise
        return client

    def ask(self, path: str = "/", body: bytes | None = None) -> http.client.HTTPResponse:
        """Send an ordinary request on a connection of its own; the answer is read."""
        connection = http.client.HTTPConnection(*self.address, timeout=SECONDS)
        try:
            connection.request("GET" if body is None else "POST", path, body)
            answer = connection.getresponse()
            answer.read()
            return answer
        finally:
            connection.close()

    def connections(self) -> int:
        """Return how many connections the server has not closed."""
        port, established = f":{self.address[1]:04X}", "01"
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        return sum(line.split()[1].endswith(port) and line.split()[3] == established for line in lines)

    def answers(self, request: bytes, *, ends: bool = True) -> bytes:
        """Return everything that the server answers to the bytes of *request* until it closes.

        The client ends its side after them, if *ends*.
        """
        with self.connect() as client:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(request)
                if ends:
                    client.shutdown(socket.SHUT_WR)
            return rest(client)


@contextlib.contextmanager
def serving(
    gunicorn: Sequence[str], application: str, variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Server]:
    """Run a web server during the block. Its socket accepts connections from the beginning."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        argv = [*gunicorn, application, f"--bind=fd://{listener.fileno()}", "--log-level=warning"]
        environment = {**os.environ, **variables}
        with subprocess.Popen(argv, cwd=ROOT, env=environment, pass_fds=[listener.fileno()]) as web:
            try:
                yield Server(listener.getsockname())
            finally:
                web.kill()


def gunicorn_with(worker: str, *options: str) -> list[str]:
    """Return the command for one process of the class *worker* with ``THREADS`` threads."""
    argv = [sys.executable, "-m", "gunicorn", f"--worker-class={worker}", f"--threads={THREADS}"]
    return [*argv, "--no-control-socket", "--graceful-timeout=1", *options]


def received_until(client: socket.socket, mark: bytes) -> bytes:
    """Return what *client* receives, up to the first part that completes *mark*."""
    received = bytearray()
    while mark not in received:
        data = client.recv(65536)
        assert data, f"the server closed after {bytes(received)!r}"
        received += data
    return bytes(received)


def rest(client: socket.socket) -> bytes:
    """Return what *client* receives until the server closes, in whatever way."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            received += data
    return bytes(received)


@contextlib.contextmanager
def slow_clients(
    server: Server, request: bytes, count: int = MANY, *, reads_bytes: int | None = None
) -> Iterator[list[socket.socket]]:
    """Attach *count* clients that have sent the bytes of *request* and do nothing more."""
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = stack.enter_context(server.connect(reads_bytes=reads_bytes))
            client.sendall(request)
            clients.append(client)
        yield clients
