"""``/healthz`` is answered by the event loop of the web server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitor.web.application import BIG
from tests.monitor.web.clients import Server, gunicorn_with, received_until, serving, slow_clients

APPLICATION = "tests.monitor.web.application:application"
HOST = b" HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(gunicorn_with("monitor.web.worker.BufferedWorker"), APPLICATION) as web:
        yield web


def test_liveness_is_answered_while_all_threads_wait(server: Server, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with slow_clients(server, b"GET /waits?" + bytes(fifo) + HOST), server.connect() as probe:
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
