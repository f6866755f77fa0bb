"""The web server reads requests in any pieces, and refuses malformed ones itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from gunicorn.config import Config
from hypothesis import given
from hypothesis import strategies as st

from monitor.operations.web_server.limits import Limits
from monitor.operations.web_server.refusal import Refusal
from monitor.operations.web_server.request_reader import RequestReader
from tests.monitor.operations.web_server.clients import Server, gunicorn_with, received_until, serving

HEAD = b"POST /api/v1/reports HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = HEAD + b"Content-Length: 9\r\n\r\nsome body"
IN_CHUNKS = CHUNKED + b"4\r\nsome\r\n5;part=2\r\n body\r\n0\r\nX-Sum: 1\r\n\r\n"
LIMITS = Limits(most_head_bytes=2_000, most_body_bytes=1_000_000, most_chunks=100)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    worker = "tests.monitor.operations.web_server.application.StrictWorker"
    with serving(gunicorn_with(worker), "tests.monitor.operations.web_server.application:application") as web:
        yield web


def reader(limits: Limits = LIMITS) -> RequestReader:
    return RequestReader(Config(), ("127.0.0.1", 1), limits)


def bodies(received: RequestReader, data: bytes) -> list[bytes]:
    """Return the bodies of all requests that are complete after *data*."""
    received.feed(data)
    complete = []
    while (request := received.take()) is not None:
        length = dict(request.headers).get("CONTENT-LENGTH", "0")
        body = request.body.read()
        assert len(body) == int(length)
        complete.append(body)
    return complete


@given(st.lists(st.integers(1, 60), min_size=1))
def test_requests_are_the_same_in_whatever_pieces_they_arrive(lengths: list[int]) -> None:
    data = SIZED + IN_CHUNKS + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + SIZED
    received, complete = reader(), []
    for number in range(len(data)):
        size = lengths[number % len(lengths)]
        complete += bodies(received, data[:size])
        data = data[size:]
    assert complete == [b"some body", b"some body", b"", b"some body"]
    assert received.is_idle


def test_a_request_that_is_not_complete_waits() -> None:
    received = reader()
    assert received.is_idle
    assert bodies(received, IN_CHUNKS[:-1]) == []
    assert (received.is_idle, received.is_in_body, received.held_bytes) == (False, True, 9)
    assert bodies(received, b"\n") == [b"some body"]


def test_the_application_sees_a_chunked_body_as_one_of_known_length() -> None:
    received = reader()
    received.feed(IN_CHUNKS)
    assert received.take().headers == [("HOST", "a"), ("CONTENT-LENGTH", "9")]


def test_a_client_that_expects_to_be_asked_for_the_body_is_asked(server: Server) -> None:
    with server.connect() as client:
        client.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        assert received_until(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"some body")
        assert received_until(client, b'"some body"').startswith(b"HTTP/1.1 200 ")


def test_requests_that_are_sent_at_once_are_answered_in_order(server: Server) -> None:
    answers = server.answers(SIZED + IN_CHUNKS + b"GET /last HTTP/1.1\r\nHost: a\r\n\r\n")
    received = [json.loads(part.split(b"\r\n\r\n")[1]) for part in answers.split(b"HTTP/1.1 200 OK")[1:]]
    assert [(each["path"], each["body"]) for each in received] == [
        ("/api/v1/reports", "some body"),
        ("/api/v1/reports", "some body"),
        ("/last", ""),
    ]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (CHUNKED + b"4\r\nsome\r\nxyz\r\n body", 400),
        (CHUNKED + b"-4\r\nsome\r\n", 400),
        (CHUNKED + b"4\r\nsome body\r\n0\r\n\r\n", 400),
        (CHUNKED + b"4" * 10_000, 400),
        (CHUNKED + b"4\r\nso", 400),
        (CHUNKED + b"4\r\nsome\r\n0\r\n", 400),
        (CHUNKED + b"FFFFFFFFFFFFFFFF\r\nsome", 400),
        (HEAD + b"Content-Length: 9\r\n\r\nsome", 400),
        (HEAD + b"Content-Length: -9\r\n\r\nsome", 400),
        (HEAD + b"Content-Length: 9\r\nContent-Length: 10\r\n\r\nsome body", 400),
        (HEAD + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\nsome body", 400),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\nsome body", 400),
        (b"no request\r\n\r\n", 400),
        (HEAD, 400),
        (HEAD + b"Transfer-Encoding: tar\r\n\r\nsome body", 501),
        (HEAD + b"X-Long: " + b"x" * 10_000 + b"\r\n\r\n", 431),
        (HEAD + b"X: y\r\n" * 20_000, 431),
        (HEAD + b"Content-Length: 1000001\r\n\r\n", 413),
        (CHUNKED + b"F4241\r\n" + b"x" * 1_000_001 + b"\r\n", 413),
    ],
)
def test_a_malformed_request_is_answered_with_its_problem(
    server: Server, request_: bytes, status: int
) -> None:
    head, _, body = server.answers(request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close" in head
    assert b"\r\nContent-Type: application/problem+json" in head
    code = {400: "malformed", 413: "too_large", 431: "too_large", 501: "unsupported"}[status]
    assert (json.loads(body)["status"], json.loads(body)["code"]) == (status, code)
    assert json.loads(body)["detail"]


def test_a_client_that_sends_on_regardless_reads_why_its_body_is_refused(server: Server) -> None:
    answer = server.answers(HEAD + b"Content-Length: 20000000\r\n\r\n" + b"x" * 20_000_000, ends=False)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"expected a body of at most 1000000 bytes, got 20000000" in answer


def test_a_body_in_too_many_chunks_is_refused() -> None:
    with pytest.raises(Refusal, match="expected at most 100 chunks, got more"):
        bodies(reader(), CHUNKED + b"1\r\nx\r\n" * 200)


def test_an_answer_that_fails_midway_does_not_end_as_if_it_were_whole(server: Server) -> None:
    answer = server.answers(b"GET /fails HTTP/1.1\r\nHost: a\r\n\r\n", ends=False)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert not answer.endswith(b"0\r\n\r\n")
    assert server.ask().status == 200
