"""The proxy of docker-compose keeps slow clients away from the web server."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from monitor.env import ROOT
from monitor.testbed.middleware.programs import locate
from tests.monitor.web.clients import Server, gunicorn_with, received_until, serving, slow_clients
from tests.reporters.needs import needs
from tests.waiting import eventually

SLOW = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nsome"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """The proxy and the web server behind it."""
    needs("nginx")
    directory = tmp_path_factory.mktemp("proxy")
    worker = gunicorn_with("monitor.web.worker.BufferedWorker")
    with serving(worker, "tests.monitor.web.application:application") as web:
        with socket.create_server(("127.0.0.1", 0)) as free:
            proxy = Server(free.getsockname())
        file = directory / "nginx.conf"
        file.write_text(_configuration(directory, proxy, web), encoding="utf-8")
        argv = [locate("nginx"), "-p", str(directory), "-e", str(directory / "error.log"), "-c", str(file)]
        with subprocess.Popen([*argv, "-g", "daemon off;"]) as nginx:
            assert eventually(lambda: _accepts(proxy) or nginx.poll() is not None)
            assert nginx.poll() is None, (directory / "error.log").read_text(encoding="utf-8")
            try:
                yield proxy, web
            finally:
                nginx.terminate()


def _configuration(directory: Path, proxy: Server, web: Server) -> str:
    """Return the configuration of docker-compose, with other addresses and files below *directory*."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    text: str = compose["configs"]["proxy"]["content"].replace("$$", "$")
    places = "".join(
        f"{kind}_temp_path {directory / kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    for before, after in (
        ("listen 8000", f"listen 127.0.0.1:{proxy.address[1]}"),
        ("http://web:8000", f"http://127.0.0.1:{web.address[1]}"),
        ("access_log /dev/stdout;", f"access_log off; {places}"),
        ("worker_processes auto;", f"worker_processes 1; pid {directory / 'pid'};"),
    ):
        assert before in text
        text = text.replace(before, after)
    return text


def _accepts(proxy: Server) -> bool:
    try:
        proxy.connect().close()
    except ConnectionRefusedError:
        return False
    return True


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
