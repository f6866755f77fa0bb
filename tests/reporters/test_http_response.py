"""Responses of HTTP/1.1 servers, byte for byte."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reporters.http_response import HttpResponse, IncompleteResponse, MalformedResponse


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        yield ours, theirs


def read(ends: tuple[socket.socket, socket.socket], sent: bytes, method: str = "GET") -> tuple[int, bytes]:
    """Return the status and the body of the response *sent*, read in pieces of at most four bytes."""
    ours, theirs = ends
    theirs.sendall(sent)
    theirs.shutdown(socket.SHUT_WR)
    response = HttpResponse(ours, method)
    return response.status, b"".join(iter(lambda: response.read(4), b""))


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: Chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "method", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello and more", "GET", b"hello"),
        (OK + b"\r\nuntil the end", "GET", b"until the end"),
        (b"HTTP/1.0 200\n\nold", "GET", b"old"),
        (CHUNKED + b"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nTrailer: 1\r\n\r\nmore", "GET", b"hello world"),
        (CHUNKED + b"0\r\n\r\n", "GET", b""),
        (b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + OK + b"\r\nthen", "GET", b"then"),
        (b"HTTP/1.1 204 No Content\r\n\r\nnothing", "GET", b""),
        (OK + b"Content-Length: 5\r\n\r\n", "HEAD", b""),
        (OK + b"\r\nof the tunnel", "CONNECT", b""),
    ],
)
def test_the_body_ends_where_the_head_says(
    ends: tuple[socket.socket, socket.socket], sent: bytes, method: str, body: bytes
) -> None:
    assert read(ends, sent, method)[1] == body


def test_headers_have_names_in_any_case_spaces_and_further_lines(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    theirs.sendall(OK + b"LOCATION:\t/a \r\n\tb\r\nX:\r\nLocation: /second\r\nContent-Length: 0\r\n\r\n")
    response = HttpResponse(ours, "GET")
    assert (response.status, response.reason, response.is_empty) == (200, "OK", True)
    assert response.headers == {"location": "/a b", "x": "", "content-length": "0"}


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 99 OK\r\n\r\n",
        OK + b" folded: first\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"name : value\r\n\r\n",
        OK + b"A: 1\r\n" * 101 + b"\r\n",
        OK + b"A: " + b"1" * 70000 + b"\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 1, 1\r\n\r\n1",
        CHUNKED + b"five\r\nhello\r\n",
        CHUNKED + b"-5\r\nhello\r\n",
        CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_response_is_refused(ends: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    with pytest.raises(MalformedResponse):
        read(ends, sent)


@pytest.mark.parametrize(
    "sent",
    [
        OK + b"Content-Len",
        OK + b"Content-Length: 5\r\n\r\nhell",
        CHUNKED + b"5\r\nhell",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\n",
    ],
)
def test_a_response_that_is_cut_off_is_noticed(
    ends: tuple[socket.socket, socket.socket], sent: bytes
) -> None:
    with pytest.raises(IncompleteResponse):
        read(ends, sent)


HEADS = [b"Content-Length: 7", b"content-length:\t5 ", b"Transfer-Encoding: chunked", b"A: 1\r\n\t2", b"A:"]
DAMAGES = [b"", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"0", b"-", b"\0", b"\xff", b"Z", b"\r\n\r\n"]


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """Draw a response that is well formed, or nearly so."""
    status = draw(st.sampled_from([b"200 OK", b"302", b"404 Not Found", b"503  Busy"]))
    headers = draw(st.lists(st.sampled_from(HEADS), max_size=3))
    pieces = draw(st.lists(st.binary(min_size=1, max_size=9), max_size=3))
    if b"Transfer-Encoding: chunked" in headers:
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b"")]
    sent = bytearray(b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"", b"".join(pieces)]))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(sent)))
        sent[place : place + draw(st.integers(0, 2))] = draw(st.sampled_from(DAMAGES))
    return bytes(sent)


@given(responses(), st.sampled_from(["GET", "POST", "HEAD"]))
@example(b"HTTP/1.1 200 OK\r\n\r\r\n\0", "GET")
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\r\n0\r\n\r\n", "GET")
def test_what_is_accepted_reads_as_in_the_standard_library(sent: bytes, method: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            found = read((ours, theirs), sent, method)
        except (MalformedResponse, IncompleteResponse):
            return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        with HTTPResponse(ours, method=method) as expected:
            expected.begin()
            assert found == (expected.status, expected.read())
