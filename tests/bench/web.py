"""gridcast's web as the demo starts it, and a client that keeps its connections."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator

from monitor.env import ROOT
from monitor.testbed.demo.services import GUNICORN, ONE_THREAD

Ask = Callable[..., bytes]


@contextlib.contextmanager
def serving(application: str) -> Iterator[tuple[str, int]]:
    """The address of a web that is up."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        # As the web would; but who connects before it is up would have what the listener has by then.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        argv = [*GUNICORN, application, f"--bind=fd://{listener.fileno()}", "--log-level=warning"]
        environment = {**os.environ, **ONE_THREAD}
        with subprocess.Popen(argv, cwd=ROOT, env=environment, pass_fds=[listener.fileno()]) as web:
            try:
                yield listener.getsockname()
            finally:
                web.terminate()


def asking(address: tuple[str, int], token: str) -> Ask:
    """What sends a body to a path or, without one, asks for it, and gives the body of the answer; each thread
    keeps its connection for as long as the web does."""
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
