"""HTTP/1.1 as clients see it: raw sockets against the commands that the manual, compose and ``serve`` start.

Nothing here knows which server answers: another one has to pass the same tests.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.core.env import ROOT
from monitor.operations.serving.services import GUNICORN
from tests.monitor.operations.web_server.clients import SECONDS, Server, received_until, rest, serving
from tests.waiting import eventually

APPLICATION = "tests.monitor.operations.web_server.echo:application"
HOST = b"Host: grid.example.org\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
KIBIBYTE = 1024


def documented_command() -> list[str]:
    """Return the command of the manual's table of processes."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\| web \| `([^`]+)` \|", text, re.MULTILINE)
    return shlex.split(line)


def compose_command() -> list[str]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return list(compose["services"]["web"]["command"])


COMMANDS = {"compose": compose_command(), "manual": documented_command(), "serve": [*GUNICORN]}


def runnable(command: list[str]) -> list[str]:
    """Return *command* of this environment, without its application and its address, and alone at home."""
    words = [word for word in command if word != "monitor.wsgi" and not word.startswith("--bind=")]
    program = words[0] if Path(words[0]).is_absolute() else str(Path(sys.executable).with_name(words[0]))
    return [program, *words[1:], "--no-control-socket"]


@pytest.fixture(scope="module", params=COMMANDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serving(runnable(COMMANDS[request.param]), APPLICATION) as web:
        yield web


@dataclass(frozen=True)
class Answer:
    version: int
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def echo(self) -> Any:
        assert self.status == 200, self
        return json.loads(self.body)

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


class _Bytes(io.BytesIO):
    """Takes the place of a socket, and stays open between the answers on it."""

    def makefile(self, _mode: str) -> _Bytes:
        return self

    def close(self) -> None:
        """Do nothing."""


def parsed(data: bytes, *methods: str) -> list[Answer]:
    """Return the answers in *data*; *methods* are those of the requests (GET), for answers without a body."""
    received, answers = _Bytes(data), list[Answer]()
    while received.tell() < len(data):
        number = len(answers)
        stream: Any = received  # HTTPResponse asks a socket for its file only
        response = HTTPResponse(stream, method=methods[number] if number < len(methods) else "GET")
        try:
            response.begin()
        except BadStatusLine:
            pytest.fail(f"no answer begins at {data[received.tell() - 100 :][:200]!r}")
        headers = {name.lower(): value for name, value in response.getheaders()}
        answers.append(Answer(response.version, response.status, headers, response.read()))
    return answers


def ask(server: Server, request: bytes, *methods: str) -> list[Answer]:
    """Return the answers to the bytes of *request*, after which the client ends its side."""
    return parsed(server.answers(request), *methods)


def refused(server: Server, request: bytes) -> Answer:
    """Return the one answer to *request*, which closes the connection and is a problem."""
    answers = ask(server, request + GET)  # what follows must not be taken for a request
    assert len(answers) == 1, answers
    (answer,) = answers
    assert answer.closes, answer
    assert answer.headers["content-type"] == "application/problem+json", answer
    problem = json.loads(answer.body)
    assert (problem["status"], bool(problem["code"]), bool(problem["detail"])) == (answer.status, True, True)
    return answer


def otherwise(server: Server, requests: Iterable[bytes], *statuses: int) -> list[tuple[bytes, str]]:
    """Return each of *requests* that is not refused with one of *statuses*, and its answer; both cut."""
    found = []
    for request in requests:
        try:
            answer = str(refused(server, request).status)
        except AssertionError as error:
            answer = str(error)
        if answer not in {str(status) for status in statuses}:
            found.append((request[:200], answer[:500]))
    return found


# Versions


@pytest.mark.parametrize(("version", "seen"), [("1.0", "HTTP/1.0"), ("1.1", "HTTP/1.1"), ("1.2", "HTTP/1.1")])
def test_the_version_of_answers_is_1_1(server: Server, version: str, seen: str) -> None:
    (answer,) = ask(server, b"GET / HTTP/%s\r\n%s\r\n" % (version.encode(), HOST))
    assert (answer.version, answer.echo["protocol"]) == (11, seen)


def test_other_versions_are_refused(server: Server) -> None:
    lines = [
        b"GET /",
        b"GET / HTTP/2.0",
        b"GET / HTTP/3",
        b"GET / http/1.1",
        b"GET / HTTP/1.11",
        b"GET / HTTP/1",
    ]
    assert otherwise(server, (line + b"\r\n" + HOST + b"\r\n" for line in lines), 400, 505) == []


def test_a_client_of_1_0_gets_no_chunks_and_the_end_of_the_connection(server: Server) -> None:
    (answer,) = ask(server, b"GET /parts HTTP/1.0\r\n\r\n" + GET)
    assert (answer.closes, answer.body) == (True, b"one two")
    assert "transfer-encoding" not in answer.headers
    request = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"
    (answer,) = ask(server, request)  # without 100 Continue, which it would not understand
    assert (answer.closes, answer.echo["body"]) == (True, "x")


# Host

INVALID_HOSTS = [
    b"", b"a b", b"a/b", b"a@b", b"a, b", b"a:port", b"a:1:2", b"[::1", b"a\x80", b"a\\b", b"a?b", b"<a>",
]  # fmt: skip


def test_a_request_without_one_valid_host_is_refused(server: Server) -> None:
    hosts = [[], [b"a", b"b"], [b"a", b"a"], *([host] for host in INVALID_HOSTS)]
    heads = [b"".join(b"Host: %s\r\n" % host for host in each) for each in hosts]
    assert otherwise(server, (b"GET / HTTP/1.1\r\n" + head + b"\r\n" for head in heads), 400) == []


def test_a_valid_host_is_accepted(server: Server) -> None:
    for host in ("a", "a:80", "a.example.org:", "[::1]:8000", "10.0.0.1", "a_b", "XN--e.org"):
        (answer,) = ask(server, b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
        assert answer.echo["host"] == host


def test_a_client_of_1_0_needs_no_host_but_a_valid_one(server: Server) -> None:
    assert [answer.status for answer in ask(server, b"GET / HTTP/1.0\r\n\r\n")] == [200]
    assert refused(server, b"GET / HTTP/1.0\r\nHost: a b\r\n\r\n").status == 400


# Targets and methods

MALFORMED_TARGETS = [
    b"http://u:p@a/", b"http:///x", b"ftp://a/", b"*", b"x", b"a:80", b"", b"/\xc3\xa9", b"/\x80", b"/a b",
    b"/a\x00b", b"/a\x7fb", b"/a#b", b"/a\rb", b"/a\nb",
]  # fmt: skip


def test_the_host_of_an_absolute_target_counts(server: Server) -> None:
    (answer,) = ask(server, b"GET http://b.example.org:81/x?y=1 HTTP/1.1\r\n" + HOST + b"\r\n")
    assert [answer.echo[key] for key in ("host", "path", "query")] == ["b.example.org:81", "/x", "y=1"]
    (answer,) = ask(server, b"GET http://b.example.org HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (answer.echo["host"], answer.echo["path"]) == ("b.example.org", "/")


def test_a_malformed_target_is_refused(server: Server) -> None:
    requests = [b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n" for target in MALFORMED_TARGETS]
    assert otherwise(server, requests, 400) == []


def test_a_path_that_looks_like_a_host_stays_a_path(server: Server) -> None:
    (answer,) = ask(server, b"GET //evil.example.org/x HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (answer.echo["host"], answer.echo["path"]) == ("grid.example.org", "//evil.example.org/x")


def test_tunnels_and_traces_are_refused(server: Server) -> None:
    for line in (b"CONNECT a:80", b"CONNECT /x", b"TRACE /"):
        answer = refused(server, line + b" HTTP/1.1\r\n" + HOST + b"Cookie: secret\r\n\r\n")
        assert answer.status in (405, 501)
        assert b"secret" not in answer.body


def test_a_malformed_method_is_refused(server: Server) -> None:
    methods = [b"get", b"G@T", b"G(T", b"", b"G" * 10_000, b"\xc3\xa9"]
    requests = [method + b" / HTTP/1.1\r\n" + HOST + b"\r\n" for method in methods]
    assert otherwise(server, requests, 400, 414, 501) == []


# Limits


def test_a_request_line_of_8_kib_is_accepted_and_a_longer_one_is_not(server: Server) -> None:
    for length, statuses in ((8 * KIBIBYTE, {200}), (8 * KIBIBYTE + 1, {414}), (100 * KIBIBYTE, {414})):
        line = b"GET /?" + b"a" * (length - len(b"GET /? HTTP/1.1")) + b" HTTP/1.1"
        assert len(line) == length
        for prefix in (b"", b"\r\n"):  # an empty line may precede it
            answers = ask(server, prefix + line + b"\r\n" + HOST + b"\r\n")
            assert {answer.status for answer in answers} == statuses


def test_a_request_line_without_an_end_is_refused_before_it_ends(server: Server) -> None:
    with server.connect() as client:
        client.sendall(b"GET /" + b"a" * 9 * KIBIBYTE)
        (answer,) = parsed(rest(client))
    assert (answer.status, answer.closes) == (414, True)


def test_headers_beyond_the_limits_are_refused(server: Server) -> None:
    much = 100 * KIBIBYTE
    for headers in (b"X: " + b"a" * much + b"\r\n", b"X: a\r\n" * 20_000, b"X" * much + b": a\r\n"):
        assert refused(server, b"GET / HTTP/1.1\r\n" + HOST + headers + b"\r\n").status == 431


def test_the_headers_of_a_browser_with_many_cookies_are_accepted(server: Server) -> None:
    cookies = b"Cookie: " + b"c=" + b"a" * 7 * KIBIBYTE + b"\r\n"
    (answer,) = ask(server, b"GET / HTTP/1.1\r\n" + HOST + cookies + b"X: y\r\n" * 60 + b"\r\n")
    assert answer.status == 200


# Framing: two servers in a row must never disagree where a request ends.

AMBIGUOUS_HEADS = [
    b"Content-Length: 4\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    b"Content-Length: 4\r\nContent-Length: 4",
    b"Content-Length: 4\r\nContent-Length: 5",
    *(b"Content-Length: " + value for value in (
        b"", b"4, 4", b"+4", b"-4", b"4_0", b"0x4", b"4 4", b"\xb2", b"9" * 5000, b"4.0", b"4\r\n 4",
    )),
    b"Content-Length : 4",
    *(b"Transfer-Encoding: " + value for value in (
        b"", b"chunked, chunked", b"chunked, identity", b"identity", b"gzip", b"gzip, chunked", b"xchunked",
        b"\x0bchunked", b"chunked;a=b", b"\r\n chunked", b"chunked\nX: y", b"chunked\rX: y", b",chunked",
        b"chunked\r\nTransfer-Encoding: chunked", b"identity\r\nTransfer-Encoding: chunked", b'"chunked"',
    )),
    b"Transfer-Encoding : chunked",
    b"X: a\r\n b", b" X: a", b"X", b": a", b"X\x00: a", b"X: a\x00b", b"X(: a", b"X: a\x7fb", b"\xc3\xa9: a",
]  # fmt: skip
MALFORMED_CHUNKS = [
    *(size + b"\r\nsome\r\n0\r\n\r\n" for size in (
        b"0x4", b"+4", b"-4", b" 4", b"4_0", b"", b"F" * 17, b"\xb2", b"g", b"4;a\nb", b"4;" + b"a" * 100_000,
    )),
    *(b"4\r\nsome" + then + b"\r\n\r\n" for then in (
        b"0", b"X\r\n0", b"\n0", b"\r\n0\r\nContent-Length: 5", b"\r\n0\r\nA: b\nC: d",
        b"\r\n0" + b"\r\nA: b" * 100_000,
    )),
    b"4\nsome\n0\n\n",
    b"0" * 100_000,
]  # fmt: skip


def test_an_ambiguous_head_is_refused(server: Server) -> None:
    requests = [POST + head + b"\r\n\r\n0\r\n\r\n" for head in AMBIGUOUS_HEADS]
    assert otherwise(server, requests, 400, 413, 501) == []


def test_chunked_with_1_0_is_refused(server: Server) -> None:
    request = b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert refused(server, request).status == 400


def test_lines_that_end_with_lf_alone_are_refused(server: Server) -> None:
    heads = [
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\n\r\n",
        b"GET / HTTP/1.1\nHost: a\r\n\r\n",
    ]
    assert otherwise(server, heads, 400) == []


def test_a_chunked_body_is_read(server: Server) -> None:
    for sent in (b"4\r\nsome\r\n0", b"4;a=b\r\nsome\r\n0\r\nX-Sum: 1", b"004\r\nsome\r\n00"):
        first, second = ask(server, CHUNKED + sent + b"\r\n\r\n" + GET)
        assert (first.echo["body"], second.echo["method"]) == ("some", "GET")
        assert "HTTP_X_SUM" not in second.echo["headers"]


def test_malformed_chunks_are_refused(server: Server) -> None:
    assert otherwise(server, (CHUNKED + sent for sent in MALFORMED_CHUNKS), 400, 413, 431) == []


def test_a_header_with_underscores_is_none_with_hyphens(server: Server) -> None:
    """A proxy that removes X-Forwarded-For from a client would let X_Forwarded_For pass."""
    request = b"GET / HTTP/1.1\r\n" + HOST + b"X_Forwarded_For: 10.0.0.1\r\nContent_Length: 5\r\n\r\n"
    (answer,) = ask(server, request)
    assert answer.status == 400 or "HTTP_X_FORWARDED_FOR" not in answer.echo["headers"]


# Connections


def test_requests_that_are_sent_at_once_are_answered_in_order(server: Server) -> None:
    paths = [f"/{number}" for number in range(50)]
    requests = b"".join(b"GET %s HTTP/1.1\r\n%s\r\n" % (path.encode(), HOST) for path in paths)
    assert [answer.echo["path"] for answer in ask(server, requests)] == paths


def test_a_connection_stays_open_until_the_client_asks_for_its_end(server: Server) -> None:
    for options in (b"close", b"Close", b"x, close", b"close, x", b"x\r\nConnection: close"):
        closing = b"GET /last HTTP/1.1\r\n" + HOST + b"Connection: " + options + b"\r\n\r\n"
        with server.connect() as client:
            for _ in range(3):
                client.sendall(GET)
                head = received_until(client, b"}").partition(b"\r\n\r\n")[0]
                assert b"close" not in head.lower()
            client.sendall(closing + GET)
            (answer,) = parsed(rest(client))
        assert (answer.closes, answer.echo["path"]) == (True, "/last")


def test_a_client_that_has_ended_its_side_gets_its_answers(server: Server) -> None:
    answers = ask(server, GET + POST + b"Content-Length: 4\r\n\r\nsome")
    assert [answer.echo["body"] for answer in answers] == ["", "some"]


def test_a_request_that_ends_too_early_is_refused(server: Server) -> None:
    for request in (GET[:-2], POST + b"Content-Length: 9\r\n\r\nsome", CHUNKED + b"4\r\nsome\r\n"):
        (answer,) = ask(server, request)
        assert (answer.status, answer.closes) == (400, True)


def test_a_client_is_asked_for_a_body_that_it_withholds(server: Server) -> None:
    with server.connect() as client:
        client.sendall(POST + b"Expect: 100-Continue\r\nContent-Length: 4\r\n\r\n")
        assert received_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        client.sendall(b"some" + GET)
        client.shutdown(socket.SHUT_WR)
        assert [answer.echo["body"] for answer in parsed(rest(client))] == ["some", ""]


def test_a_body_that_is_too_large_is_not_asked_for(server: Server) -> None:
    with server.connect() as client:
        client.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 1000000000\r\n\r\n")
        (answer,) = parsed(rest(client))
    assert (answer.status, answer.closes) == (413, True)


def test_an_unknown_expectation_is_refused(server: Server) -> None:
    assert refused(server, POST + b"Expect: the best\r\nContent-Length: 0\r\n\r\n").status == 417


# Answers


def test_answers_to_head_and_answers_without_content_have_no_body(server: Server) -> None:
    lines = ["HEAD /", "HEAD /parts", "GET /empty", "GET /unchanged", "GET /"]
    sent = b"".join(b"%s HTTP/1.1\r\n%s\r\n" % (line.encode(), HOST) for line in lines)
    answers = ask(server, sent, *(line.split()[0] for line in lines))
    assert [answer.status for answer in answers] == [200, 200, 204, 304, 200]
    assert [answer.body for answer in answers[:4]] == [b""] * 4
    assert "content-length" not in answers[2].headers
    assert [answer.headers.get("transfer-encoding") for answer in answers[2:4]] == [None, None]
    assert answers[4].echo["path"] == "/"


def test_an_answer_of_unknown_length_is_sent_in_chunks(server: Server) -> None:
    first, second = ask(server, GET.replace(b"/ ", b"/parts ") + GET)
    assert (first.headers["transfer-encoding"], first.body, second.status) == ("chunked", b"one two", 200)


def test_no_value_of_a_header_becomes_another_header(server: Server) -> None:
    for value in (
        b"a%0d%0aX-Injected:%201",
        b"a%0aX-Injected:%201",
        b"a%0dX-Injected:%201",
        b"a%00X-Injected",
    ):
        received = server.answers(b"GET /header?" + value + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        (answer,) = parsed(received)
        assert answer.status == 500
        assert b"X-Injected" not in received


def test_every_answer_has_its_date_and_nothing_of_the_request_in_its_head(server: Server) -> None:
    for request in (GET, b"GET /reflected HTTP/9.9\r\nX: reflected\r\n\r\n"):
        head = server.answers(request).partition(b"\r\n\r\n")[0]
        assert b"\r\nDate: " in head
        assert b"reflected" not in head


# Many connections

LIMIT = 3
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture(scope="module")
def limited() -> Iterator[Server]:
    """A web server of one process that gives one address a few connections."""
    command = [*runnable(COMMANDS["compose"]), "--workers=1"]
    with serving(command, APPLICATION, {"GRIDCAST_CONNECTIONS_PER_ADDRESS": str(LIMIT)}) as web:
        yield web


def test_an_address_with_too_many_connections_is_refused_and_its_liveness_is_not(limited: Server) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(limited.connect()) for _ in range(LIMIT)]
        for client in held:
            client.sendall(GET[:-2])
        for number in range(20):
            silent = stack.enter_context(limited.connect())
            silent.sendall(GET[: 9 * (number % 2)])
            (answer,) = parsed(limited.answers(GET, ends=False))
            assert (answer.status, answer.closes, answer.headers["retry-after"]) == (503, True, "1")
            assert json.loads(answer.body)["code"] == "busy"
            (answer,) = parsed(limited.answers(HEALTH, ends=False))
            assert (answer.status, answer.closes, answer.body) == (200, True, b"alive\n")
        assert [answer.status for answer in parsed(rest(silent))] in ([], [503])
        for client in held:
            client.sendall(b"\r\n")
            client.shutdown(socket.SHUT_WR)
            assert [answer.status for answer in parsed(rest(client))] == [200]
    assert eventually(lambda: limited.ask().status == 200)


def test_a_surplus_connection_is_refused_before_its_body_arrives(limited: Server) -> None:
    with ExitStack() as stack:
        for _ in range(LIMIT):
            stack.enter_context(limited.connect()).sendall(GET[:-2])
        client = stack.enter_context(limited.connect())
        client.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
        assert [answer.status for answer in parsed(rest(client))] == [503]


def test_a_proxy_has_as_many_connections_as_it_needs() -> None:
    command = [*runnable(COMMANDS["compose"]), "--workers=1"]
    variables = {"GRIDCAST_CONNECTIONS_PER_ADDRESS": "1", "GRIDCAST_PROXIES": "10.0.0.0/8, 127.0.0.0/8, unix"}
    with serving(command, APPLICATION, variables) as web, ExitStack() as stack:
        for _ in range(LIMIT):
            stack.enter_context(web.connect()).sendall(GET[:-2])
        assert web.ask().status == 200


@pytest.mark.parametrize(
    ("name", "value"), [("GRIDCAST_PROXIES", "proxy.example.org"), ("GRIDCAST_CONNECTIONS_PER_ADDRESS", "0")]
)
def test_a_server_with_an_unusable_limit_does_not_start(name: str, value: str) -> None:
    command = [*runnable(COMMANDS["compose"]), APPLICATION, "--bind=127.0.0.1:0"]
    done = subprocess.run(
        command,
        env={**os.environ, name: value},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode != 0
    assert f"{name}: expected" in done.stderr


# Slow clients


def test_a_request_in_single_bytes_is_answered_beside_many_slow_ones(server: Server) -> None:
    with ExitStack() as stack:
        for sent in (b"", b"GET", GET[:-2], POST + b"Content-Length: 9\r\n\r\ns", CHUNKED + b"4\r\ns"):
            for _ in range(8):
                stack.enter_context(server.connect()).sendall(sent)
        slow = stack.enter_context(server.connect())
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = CHUNKED + b"4\r\nsome\r\n0\r\n\r\n"
        for number in range(len(request)):
            slow.sendall(request[number : number + 1])
        slow.settimeout(SECONDS)
        slow.shutdown(socket.SHUT_WR)
        (answer,) = parsed(rest(slow))
    assert answer.echo["body"] == "some"
