"""The proxy of docker-compose keeps slow clients away from the web server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from monitor.core.env import ROOT
from tests.monitor.operations.serving import nginx
from tests.monitor.operations.web_server.clients import (
    Server,
    gunicorn_with,
    received_until,
    serving,
    slow_clients,
)
from tests.reporters.needs import needs
from tests.waiting import eventually

CONNECTIONS = 60  # of one address at the proxy: more than the slow clients of a test
SLOW = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nsome"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """The proxy and the web server behind it."""
    needs("nginx")
    directory = tmp_path_factory.mktemp("proxy")
    worker = gunicorn_with("monitor.operations.web_server.worker.BufferedWorker")
    with serving(worker, "tests.monitor.operations.web_server.application:application") as web:
        proxy = nginx.free_address()
        with nginx.running(directory, _configuration(directory, proxy, web), proxy):
            yield proxy, web


def _configuration(directory: Path, proxy: Server, web: Server) -> str:
    """Return the configuration of docker-compose, with other addresses and files below *directory*."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    text: str = compose["configs"]["proxy"]["content"].replace("$$", "$")
    for before, after in (
        ("listen 8000", f"listen 127.0.0.1:{proxy.address[1]}"),
        ("http://web:8000", f"http://127.0.0.1:{web.address[1]}"),
        ("limit_conn addresses 400;", f"limit_conn addresses {CONNECTIONS};"),
        ("access_log /dev/stdout;", nginx.private_files(directory)),
        ("worker_processes auto;", f"worker_processes 1; pid {directory / 'pid'};"),
    ):
        assert before in text
        text = text.replace(before, after)
    return text


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The proxy before gridcast, which knows it and a proxy at 192.0.2.80."""
    needs("nginx")
    directory = tmp_path_factory.mktemp("named")
    worker = gunicorn_with("monitor.operations.web_server.worker.BufferedWorker")
    variables = {"GRIDCAST_PROXIES": "127.0.0.1,192.0.2.80", "GRIDCAST_TLS": "1"}
    with serving(worker, "tests.monitor.operations.web_server.proxied:application", variables) as web:
        proxy = nginx.free_address()
        with nginx.running(directory, _configuration(directory, proxy, web), proxy):
            yield proxy


def test_slow_senders_do_not_reach_the_web_server(servers: tuple[Server, Server]) -> None:
    proxy, web = servers
    with slow_clients(proxy, SLOW):
        assert proxy.ask("/", b"body").status == 200
        assert eventually(lambda: web.connections() == 0)


def test_too_large_a_body_is_answered_with_a_problem(servers: tuple[Server, Server]) -> None:
    proxy, _ = servers
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
    with slow_clients(proxy, head, 1) as (client,):
        answer = received_until(client, b'"code": "too_large"')
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in answer


def test_too_long_a_line_and_too_long_headers_are_answered_with_a_problem(
    servers: tuple[Server, Server],
) -> None:
    """Those of up to 16 KiB by the web server, longer ones by the proxy."""
    proxy, _ = servers
    end = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for length, statuses in ((8000, (200, 200)), (9000, (414, 431)), (20_000, (414, 431))):
        long = b"a" * length
        requests = (b"GET /" + long + end + b"\r\n", b"GET /" + end + b"X: " + long + b"\r\n\r\n")
        for request, status in zip(requests, statuses, strict=True):
            answer = proxy.answers(request, ends=False)
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert (b'"code": "too_large"' in answer) == (status != 200)


def test_an_address_with_too_many_requests_at_once_is_refused_by_the_proxy(
    servers: tuple[Server, Server],
) -> None:
    """An address: that which a proxy in front names."""
    proxy, _ = servers
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
        line = b"GET /waits?%d HTTP/1.1\r\nHost: localhost\r\n" % listener.getsockname()[1]
        for _ in range(CONNECTIONS):
            client = stack.enter_context(proxy.connect())
            client.sendall(line + b"X-Forwarded-For: 192.0.2.1\r\n\r\n")
        asked = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: "
        assert eventually(lambda: b" 503 " in proxy.answers(asked + b"192.0.2.1\r\n\r\n", ends=False))
        answer = proxy.answers(asked + b"192.0.2.1\r\n\r\n", ends=False)
        assert b'"code": "busy"' in answer
        assert b"\r\nRetry-After: 1\r\n" in answer
        live = asked.replace(b"/ ", b"/healthz ") + b"192.0.2.1\r\n\r\n"
        assert proxy.answers(live, ends=False).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("sent", "client"),
    [
        ("", "127.0.0.1"),
        ("203.0.113.7", "203.0.113.7"),
        ("198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 192.0.2.80", "203.0.113.7"),
        ("198.51.100.1, unknown", "127.0.0.1"),
    ],
)
def test_the_proxy_adds_its_peer_to_what_a_named_proxy_in_front_says(
    named: Server, sent: str, client: str
) -> None:
    """Here the peer is 127.0.0.1, which is named: what it says of its own peer counts."""
    line = f"X-Forwarded-For: {sent}\r\n" if sent else ""
    request = f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-Proto: https\r\n{line}"
    answer = named.answers(
        f"{request}Forwarded: for=1.1.1.1\r\nX-Real-IP: 1.1.1.1\r\n\r\n".encode(), ends=False
    )
    seen = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (seen["client"], seen["scheme"]) == (client, "https")
    assert not {"Forwarded", "X-Real-Ip"} & set(seen["headers"])
