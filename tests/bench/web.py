"""Start gridcast's web server as the demo does, with a client that keeps its connections."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO

from monitor.core.env import ROOT
from monitor.operations.serving.services import GUNICORN, ONE_THREAD

Ask = Callable[..., bytes]


@contextlib.contextmanager
def serving(
    application: str, variables: Mapping[str, str] | None = None, stderr: IO[bytes] | None = None
) -> Iterator[tuple[str, int]]:
    """Run a web server with additional environment *variables* during the block; yield its address."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        # gunicorn sets this, but connections accepted before it is up inherit the listener's options.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        argv = [*GUNICORN, application, f"--bind=fd://{listener.fileno()}", "--log-level=warning"]
        unlimited = {"GRIDCAST_PROXIES": "127.0.0.1"}  # all clients have one address
        environment = {**os.environ, **ONE_THREAD, **unlimited, **(variables or {})}
        with subprocess.Popen(
            argv, cwd=ROOT, env=environment, pass_fds=[listener.fileno()], stderr=stderr
        ) as web:
            try:
                yield listener.getsockname()
            finally:
                web.terminate()


def asking(address: tuple[str, int], token: str) -> Ask:
    """Return a function that requests a path (POST with a body, else GET) and returns the answer's body.

    Each thread keeps its connection.
    """
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    kept = threading.local()

    def ask(path: str, body: bytes | None = None) -> bytes:
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection(*address)
        kept.connection.request("GET" if body is None else "POST", path, body, headers)
        answer = kept.connection.getresponse()
        content: bytes = answer.read()
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {content!r:.1000}")
        return content

    return ask
