"""gridcast behind a real nginx, by TCP and by a Unix socket, which is named as a proxy or not."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from monitor.core.env import ROOT
from tests.monitor.operations.serving import nginx
from tests.monitor.operations.web_server.clients import SECONDS, Server, gunicorn_with, serving
from tests.reporters.needs import needs
from tests.waiting import eventually

APPLICATION = "tests.monitor.operations.web_server.proxied:application"
# Another server believes peers on this host by itself: the application has to know better.
OURS, OTHER = "monitor.operations.web_server.worker.BufferedWorker", "sync"
CLIENT, FORGED = "203.0.113.7", "198.51.100.1"
# As docs/operations.md has it; the address of the client is that of the test's "network".
CONFIGURATION = """
worker_processes 1; pid {directory}/pid; {user}
events {{ worker_connections 64; }}
http {{
  {private}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {upstream};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-Proto https;
      proxy_set_header X-Forwarded-For "$http_x_forwarded_for, {client}";
    }}
  }}
}}
"""


WAYS = pytest.mark.parametrize(
    ("worker", "unix"), [(OURS, False), (OURS, True), (OTHER, False)], ids=["tcp", "unix", "other server"]
)


class Answer(NamedTuple):
    status: int
    text: str
    location: str | None

    @property
    def seen(self) -> dict[str, Any]:
        return dict(json.loads(self.text))


def ask(server: Server, path: str = "/", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(*server.address, timeout=SECONDS)
    try:
        connection.request(
            "GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(), answer.getheader("Location"))
    finally:
        connection.close()


@contextmanager
def at_socket(worker: str, directory: Path, variables: dict[str, str]) -> Iterator[str]:
    """Serve at a Unix socket; yield the upstream for nginx."""
    path = directory / "web.sock"
    command = [*gunicorn_with(worker), APPLICATION, f"--bind=unix:{path}", "--log-level=warning"]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **variables}) as web:
        try:
            assert eventually(lambda: _accepts(path))
            yield f"http://unix:{path}:"
        finally:
            web.terminate()


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


Behind = Callable[..., tuple[Server, Server | None]]


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    """Start nginx, and gridcast behind it with variables; return both, None for a server at a Unix socket."""
    needs("nginx")
    with ExitStack() as stack:

        def started(worker: str, *, unix: bool = False, **variables: str) -> tuple[Server, Server | None]:
            web = None
            if unix:
                upstream = stack.enter_context(at_socket(worker, tmp_path, variables))
            else:
                web = stack.enter_context(serving(gunicorn_with(worker), APPLICATION, variables))
                upstream = f"http://127.0.0.1:{web.address[1]}"
            proxy = nginx.free_address()
            text = CONFIGURATION.format(
                directory=tmp_path,
                private=nginx.private_files(tmp_path),
                port=proxy.address[1],
                upstream=upstream,
                client=CLIENT,
                user="user root;" if os.geteuid() == 0 else "",  # only the owner may open the socket
            )
            stack.enter_context(nginx.running(tmp_path, text, proxy))
            return proxy, web

        yield started


@WAYS
def test_behind_tls_a_proxy_on_this_host_names_the_client(behind: Behind, worker: str, unix: bool) -> None:
    proxy, _ = behind(worker, unix=unix, GRIDCAST_TLS="1")
    seen = ask(proxy, X_Forwarded_For=FORGED, X_Forwarded_Proto="http").seen
    assert (seen["client"], seen["scheme"]) == (CLIENT, "https")


@WAYS
def test_behind_tls_a_proxy_that_is_not_named_gets_the_line_to_add(
    behind: Behind, worker: str, unix: bool
) -> None:
    named, line = ("127.0.0.1", "unix") if unix else ("unix", "127.0.0.1")
    proxy, _ = behind(worker, unix=unix, GRIDCAST_TLS="1", GRIDCAST_PROXIES=named)
    answer = ask(proxy)
    assert (answer.status, answer.location) == (421, None)
    assert answer.text.endswith(f"GRIDCAST_PROXIES=...,{line}\n")
    assert json.loads(ask(proxy, "/api/v1/page").text)["code"] == "unknown_proxy"


@WAYS
def test_without_tls_only_a_named_proxy_names_the_client(behind: Behind, worker: str, unix: bool) -> None:
    proxy, _ = behind(worker, unix=unix, GRIDCAST_TLS="0")
    seen = ask(proxy, X_Forwarded_For=FORGED).seen
    assert (seen["client"], seen["scheme"]) == ("" if unix else "127.0.0.1", "http")
    assert not [name for name in seen["headers"] if "Forwarded" in name]


@WAYS
def test_a_named_proxy_names_the_client_without_tls_as_well(behind: Behind, worker: str, unix: bool) -> None:
    proxy, _ = behind(worker, unix=unix, GRIDCAST_TLS="0", GRIDCAST_PROXIES="unix" if unix else "127.0.0.1")
    assert ask(proxy, X_Forwarded_For=FORGED).seen["client"] == CLIENT


@pytest.mark.parametrize("worker", [OURS, OTHER])
def test_a_client_that_reaches_the_port_itself_can_forge_nothing(behind: Behind, worker: str) -> None:
    _, web = behind(worker, GRIDCAST_TLS="0", GRIDCAST_PROXIES="unix")
    assert web is not None
    forged = {"X_Forwarded_For": FORGED, "X_Forwarded_Proto": "https", "X_Forwarded_Host": "evil.example.org"}
    seen = ask(web, **forged, X_Real_IP=FORGED, Forwarded=f"for={FORGED}").seen
    assert (seen["client"], seen["scheme"]) == ("127.0.0.1", "http")
    assert seen["url"] == f"http://127.0.0.1:{web.address[1]}/"


def test_a_peer_on_this_host_sets_no_variable_of_the_environment(behind: Behind) -> None:
    _, web = behind(OURS, GRIDCAST_TLS="0")
    assert web is not None
    for header in ("SCRIPT_NAME: /evil", "PATH_INFO: /evil", "X_Forwarded_For: 1.1.1.1"):
        request = f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n"
        answer = web.answers(request.encode(), ends=False)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["url"] == "http://localhost/"
