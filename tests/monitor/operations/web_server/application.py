"""A WSGI application for tests of the web server, and workers that run it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any

from monitor.operations.web_server.limits import Limits, TransferPace
from monitor.operations.web_server.worker import BufferedWorker

BIG = b"y" * 5_000_000  # more than the kernel takes for a client that does not read
PART = b"x" * 1_000_000
PARTS = 30


class StrictWorker(BufferedWorker):
    """Accepts small bodies only."""

    limits = Limits(most_body_bytes=1_000_000)


class HurriedWorker(BufferedWorker):
    """Has deadlines that are over at once."""

    limits = Limits(
        head_seconds=0.2,
        body=TransferPace(0.2, 1e9),
        answer=TransferPace(0.2, 1e9),
        check_seconds=0.05,
    )


class CrowdedWorker(BufferedWorker):
    """Holds little for all its connections together."""

    limits = Limits(most_buffered_bytes=2_000_000, check_seconds=0.05)


class ReplacedWorker(BufferedWorker):
    """Is replaced as soon as it has grown."""

    limits = Limits(check_seconds=0.05, grown_seconds=0.0)


_held: list[bytes] = []


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer what was received; ``/big``, ``/parts`` and ``/fails`` have other answers.

    ``/waits?PORT`` is answered when the listener of the port is closed. ``/grows?BYTES`` keeps so many.
    ``/held?SECONDS`` is sent so much later.
    """
    path = environ["PATH_INFO"]
    if path == "/waits":
        _wait_for(int(environ["QUERY_STRING"]))
    if path == "/held":
        environ["gunicorn.socket"].hold(float(environ["QUERY_STRING"]))
    if path == "/grows":
        _held.append(b"x" * int(environ["QUERY_STRING"]))
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length)
    if path in {"/parts", "/fails"}:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return _parts(fails=path == "/fails")
    received = {
        "process": os.getpid(),
        "method": environ["REQUEST_METHOD"],
        "path": path,
        "body": body.decode("latin-1"),
    }
    answer = BIG if path == "/big" else json.dumps(received).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]


def _parts(*, fails: bool) -> Iterator[bytes]:
    for _ in range(PARTS):
        yield PART
        if fails:
            raise RuntimeError("the answer fails midway")


def _wait_for(port: int) -> None:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)
