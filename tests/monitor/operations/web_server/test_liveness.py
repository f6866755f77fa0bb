"""``/healthz`` is answered by the event loop of the web server."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from tests.monitor.operations.web_server.application import BIG
from tests.monitor.operations.web_server.clients import (
    THREADS,
    Server,
    gunicorn_with,
    received_until,
    serving,
    slow_clients,
)

APPLICATION = "tests.monitor.operations.web_server.application:application"
HOST = b" HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(gunicorn_with("monitor.operations.web_server.worker.BufferedWorker"), APPLICATION) as web:
        yield web


def test_liveness_is_answered_while_all_threads_wait(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        request = b"GET /waits?%d" % listener.getsockname()[1] + HOST
        with slow_clients(server, request), contextlib.ExitStack() as waiting:
            for _ in range(THREADS):
                waiting.enter_context(listener.accept()[0])
            with server.connect() as probe:
                probe.sendall(b"GET /healthz" + HOST)
                received = received_until(probe, b"alive\n")
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Connection: keep-alive\r\n" in received


def test_liveness_keeps_its_place_among_requests_that_are_sent_at_once(server: Server) -> None:
    asked = [b"GET /healthz", b"GET /big", *[b"GET /healthz"] * 2000, b"HEAD /healthz", b"POST /healthz"]
    answers = server.answers(HOST.join([*asked, b""])).split(b"HTTP/1.1 200 OK")[1:]
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in answers]
    assert (bodies[0], bodies[1], {*bodies[2:2002]}) == (b"alive\n", BIG, {b"alive\n"})
    assert bodies[2002] == b""
    assert b'"path": "/healthz"' in bodies[2003]
