"""A web process that has grown is replaced between requests, and no request is lost."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from monitor.operations.web_server.replacement import GROWTH_BYTES, LEAST_GROWTH_BYTES, MEBIBYTE, Replacement
from tests.monitor.operations.web_server.clients import (
    THREADS,
    Server,
    gunicorn_with,
    received_until,
    serving,
)
from tests.waiting import eventually

APPLICATION = "tests.monitor.operations.web_server.application:application"
START = 100 * MEBIBYTE


def replies(connection: socket.socket, path: str) -> Any:
    """Return the answer to a request on a connection that stays open."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    return json.loads(received_until(connection, b"}").partition(b"\r\n\r\n")[2])


def test_a_process_that_has_grown_is_replaced_and_no_request_is_lost() -> None:
    most = f"GRIDCAST_WEB_MAX_BYTES={MEBIBYTE}"  # less than each has at its start: the least growth counts
    worker, options = (
        "tests.monitor.operations.web_server.application.ReplacedWorker",
        ["--workers=2", "--graceful-timeout=300"],
    )
    gunicorn = ["env", most, *gunicorn_with(worker, *options)]
    with serving(gunicorn, APPLICATION) as server, contextlib.ExitStack() as running:
        held = running.enter_context(socket.create_server(("127.0.0.1", 0)))
        waiting = [running.enter_context(server.connect()) for _ in range(THREADS - 1)]
        for connection in waiting:
            connection.sendall(b"GET /waits?%d HTTP/1.1\r\nHost: a\r\n\r\n" % held.getsockname()[1])
        at_work = [running.enter_context(held.accept()[0]) for _ in waiting]
        grown = grow(server, f"/grows?{LEAST_GROWTH_BYTES + 32 * MEBIBYTE}")
        answers: list[int] = []
        stop = threading.Event()
        asker = threading.Thread(target=ask_until, args=(server, stop, answers))
        asker.start()
        try:
            assert eventually(lambda: grown not in answers[-20:] and len(answers) > 20, within_seconds=120)
            for each in at_work:
                each.close()
            for connection in waiting:
                assert b" 200 OK" in received_until(connection, b"}")
            assert eventually(lambda: is_gone(grown), within_seconds=120)
            assert eventually(lambda: len({*answers[-40:]}) == 2, within_seconds=120)  # another has started
        finally:
            stop.set()
            asker.join()
        assert 0 not in answers
        assert grown not in answers[-40:]


def is_gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def grow(server: Server, path: str) -> int:
    """Have a process grow; return its id. What it sends and reads then still has its answer."""
    with server.connect() as connection:
        process = int(replies(connection, path)["process"])
        assert replies(connection, "/still")["process"] == process
        return process


def ask_until(server: Server, stop: threading.Event, answers: list[int]) -> None:
    """Ask for the ids of processes, each time on a new connection; 0 is a request that was not answered."""
    while not stop.is_set():
        process = 0
        with contextlib.suppress(OSError, AssertionError), server.connect() as connection:
            process = int(replies(connection, "/")["process"])
        answers.append(process)


@pytest.fixture
def lock() -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        yield file


def reasons(lock: IO[bytes], sizes: Mapping[float, int], most_bytes: int | None = None) -> list[str]:
    """Return what is decided about a process that has *sizes* by time."""
    remaining = iter(sizes.values())
    replacement = Replacement(most_bytes, 10.0, lock, lambda: next(remaining))
    return [replacement.reason(now) for now in sizes]


def test_a_process_ends_after_it_was_too_large_for_ten_seconds(lock: IO[bytes]) -> None:
    large = START + GROWTH_BYTES + MEBIBYTE
    sizes = {0.0: START, 1.0: large, 10.0: START, 20.0: large, 29.0: large, 30.0: large}
    assert reasons(lock, sizes) == [""] * 5 + ["613 MiB of memory, 612 MiB permitted"]


def test_a_limit_below_the_size_at_the_start_does_not_replace_processes_for_ever(lock: IO[bytes]) -> None:
    larger = START + LEAST_GROWTH_BYTES
    assert reasons(lock, {0.0: START, 100.0: larger, 200.0: larger}, most_bytes=1) == [""] * 3


def test_two_processes_do_not_end_at_the_same_time(lock: IO[bytes]) -> None:
    holds = "import fcntl, sys; fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX); print(1, flush=True); input()"
    argv = [sys.executable, "-c", holds, str(lock.fileno())]
    grown = {0.0: START, 1.0: 10 * START, 100.0: 10 * START}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, pass_fds=[lock.fileno()], **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        assert reasons(lock, grown)[-1] == ""
        other.communicate(b"\n")
    assert reasons(lock, grown)[-1]
