"""Slow clients hold no thread of the web server, and are ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from gunicorn.config import Config
from gunicorn.errors import ConfigError

from monitor.operations.serving.services import GUNICORN
from monitor.operations.web_server.worker import BufferedWorker
from tests.monitor.operations.web_server.application import BIG, PART, PARTS
from tests.monitor.operations.web_server.clients import (
    Server,
    gunicorn_with,
    received_until,
    rest,
    serving,
    slow_clients,
)
from tests.waiting import eventually

APPLICATION = "tests.monitor.operations.web_server.application:application"
SLOW = {
    "headers": b"POST / HTTP/1.1\r\nHost: a\r\nX-Slow: ",
    "body": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome",
    "chunked body": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
}
READERS = {
    "answer": b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n",
    "parts": b"GET /parts HTTP/1.1\r\nHost: a\r\n\r\n",
}
FEW_BYTES = 4096


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A web server with the deadlines of production."""
    (worker,) = (option for option in GUNICORN if option.startswith("--worker-class="))
    argv = gunicorn_with(worker.partition("=")[2], "--worker-connections=100")
    with serving(argv, APPLICATION, {"GRIDCAST_PROXIES": "127.0.0.1"}) as web:
        yield web


@pytest.fixture(scope="module")
def hurried() -> Iterator[Server]:
    """A web server whose deadlines are over at once."""
    with serving(
        gunicorn_with("tests.monitor.operations.web_server.application.HurriedWorker"), APPLICATION
    ) as web:
        yield web


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW.keys())
def test_requests_are_answered_while_slow_senders_are_attached(server: Server, slow: bytes) -> None:
    with slow_clients(server, slow) as senders:
        assert server.ask().status == 200
        assert server.ask("/", b"body").status == 200
        senders[0].sendall(b"")  # still attached


@pytest.mark.parametrize("request_", READERS.values(), ids=READERS.keys())
def test_requests_are_answered_while_slow_readers_are_attached(server: Server, request_: bytes) -> None:
    with slow_clients(server, request_, reads_bytes=FEW_BYTES):
        assert server.ask().status == 200


def test_a_slow_sender_gets_its_answer_when_it_has_sent_everything(server: Server) -> None:
    with slow_clients(server, SLOW["chunked body"], 1) as (sender,):
        sender.sendall(b"5\r\n body\r\n0\r\n\r\n")
        assert received_until(sender, b'"some body"').startswith(b"HTTP/1.1 200 ")


def test_a_slow_reader_gets_its_whole_answer(server: Server) -> None:
    for request, length in ((READERS["answer"], len(BIG)), (READERS["parts"], len(PART) * PARTS)):
        with slow_clients(server, request, 1, reads_bytes=FEW_BYTES) as (reader,):
            received = 0
            while received < length:
                received += len(reader.recv(1_000_000))


def test_a_sender_that_misses_its_deadline_is_told_so(hurried: Server) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(slow_clients(hurried, slow, 3)) for slow in SLOW.values()]
        for answer in (rest(sender) for senders in clients for sender in senders):
            assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            assert b"\r\nConnection: close\r\n" in answer
            assert b'"code": "too_slow"' in answer


def test_a_silent_client_is_disconnected(hurried: Server) -> None:
    with slow_clients(hurried, b"", 1) as (client,):
        assert rest(client) == b""


def test_a_reader_that_misses_its_deadline_is_disconnected(hurried: Server) -> None:
    with (
        slow_clients(hurried, READERS["answer"], 3, reads_bytes=FEW_BYTES) as readers,
        slow_clients(hurried, READERS["parts"], 3, reads_bytes=FEW_BYTES) as readers_of_parts,
    ):
        assert eventually(lambda: hurried.connections() == 0)
        assert all(len(rest(reader)) < len(BIG) for reader in readers)
        assert all(len(rest(reader)) < len(PART) * PARTS for reader in readers_of_parts)


def test_more_connections_than_permitted_end_the_oldest_slow_ones(server: Server) -> None:
    with slow_clients(server, SLOW["body"], 130) as senders:
        assert server.ask().status == 200
        assert b"HTTP/1.1 200" not in rest(senders[0])


def test_more_bytes_than_permitted_end_the_oldest_connections() -> None:
    half = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 500_000
    crowded = gunicorn_with("tests.monitor.operations.web_server.application.CrowdedWorker")
    with serving(crowded, APPLICATION) as server, slow_clients(server, half, 6) as senders:
        rest(senders[0])
        assert server.ask().status == 200


def test_a_certificate_is_refused_instead_of_serving_without_tls() -> None:
    config = Config()
    config.set("certfile", __file__)
    with pytest.raises(ConfigError, match="end TLS at a proxy"):
        BufferedWorker.check_config(config, None)


def test_an_answer_that_is_held_back_holds_no_thread_and_is_sent_in_the_end() -> None:
    held = b"GET /held?%s HTTP/1.1\r\nHost: a\r\n\r\n"
    checks_often = gunicorn_with("tests.monitor.operations.web_server.application.ReplacedWorker")
    with serving(checks_often, APPLICATION) as server, slow_clients(server, held % b"3600") as clients:
        assert server.ask().status == 200
        for client in clients:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(1)
        assert b'"path": "/held"' in server.answers(held % b"0.2")
