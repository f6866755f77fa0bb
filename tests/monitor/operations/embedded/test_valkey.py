"""The embedded Valkey: keeps its data and answers only through its socket."""

from __future__ import annotations

import os
import signal
import socket
import stat
from pathlib import Path

import redis

from monitor.operations.embedded import places
from monitor.operations.embedded.valkey import Valkey
from monitor.operations.supervisor import read_status
from tests.waiting import eventually

from .conftest import supervised


def client(server: Valkey) -> redis.Redis:
    return redis.Redis.from_url(server.url.replace("redis+socket://", "unix://"))


def test_a_second_start_continues_with_the_data_of_the_first(var: Path) -> None:
    server = Valkey(var)
    with supervised(var, server.service()), client(server) as session:
        session.set("answer", "42")
    with supervised(var, Valkey(var).service()), client(server) as session:
        assert session.get("answer") == b"42"


def test_after_a_kill_it_restarts_with_the_saved_data(var: Path) -> None:
    server = Valkey(var)
    with supervised(var, server.service()), client(server) as session:
        session.set("answer", "42")
        session.save()
        status = read_status(var / "run" / "supervisor.json")
        assert status is not None
        os.kill(status.services["valkey"].pid or 0, signal.SIGKILL)
        assert eventually(lambda: answer_of(session)) == b"42"


def answer_of(session: redis.Redis) -> object:
    """Return the stored value; None while the server is down."""
    try:
        return session.get("answer")
    except redis.ConnectionError:
        return None


def test_only_its_owner_can_open_its_socket_and_there_is_no_port(var: Path) -> None:
    server = Valkey(var, durable=False)
    with supervised(var, server.service()), client(server) as session:
        socket_file = places.socket_directory(var) / "valkey.sock"
        assert stat.S_IMODE(socket_file.stat().st_mode) == 0o700
        assert session.config_get("port") == {"port": "0"}


def test_a_server_that_does_not_answer_is_not_ready(var: Path) -> None:
    server = Valkey(var, durable=False)
    server.prepare()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(places.socket_directory(var) / "valkey.sock"))
        silent.listen()
        assert not server.ready()


def test_the_incomplete_file_of_a_killed_server_is_removed(var: Path) -> None:
    server = Valkey(var)
    half_written = var / "valkey" / "temp-4711.rdb"
    half_written.parent.mkdir()
    half_written.touch()
    server.prepare()
    assert not half_written.exists()
