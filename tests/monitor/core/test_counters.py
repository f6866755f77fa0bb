"""Counters of all processes are added up in the broker's server; while it is away they wait."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from monitor.core.counters import MOST_UNWRITTEN, SharedCounters, connect
from tests.waiting import eventually


@pytest.fixture
def key() -> Iterator[str]:
    name = f"test:{uuid.uuid4()}"
    yield name
    connect().delete(name)


def nowhere(directory: Path) -> Redis:
    return Redis.from_url(f"unix://{directory}/no.sock")


def test_processes_add_up(key: str) -> None:
    one, other = SharedCounters(connect, key), SharedCounters(connect, key)
    one.add("answers", "GET")
    one.add("answers", "GET", amount=1.5)
    other.add("answers", "GET")
    other.add("answers", "POST")
    one.write()
    assert other.read() == {("answers", "GET"): 3.5, ("answers", "POST"): 1.0}


def test_counts_are_written_without_another_call(key: str) -> None:
    SharedCounters(connect, key).add("answers")
    reader = SharedCounters(connect, key)
    assert eventually(reader.read) == {("answers",): 1.0}


def test_counts_wait_while_the_server_is_away(key: str, tmp_path: Path) -> None:
    clients = [nowhere(tmp_path)]
    counters = SharedCounters(lambda: clients[0], key)
    counters.add("answers")
    counters.write()
    clients[0] = connect()
    counters.add("answers")
    assert counters.read() == {("answers",): 2.0}


def test_what_waits_is_bounded(key: str, tmp_path: Path) -> None:
    counters = SharedCounters(lambda: nowhere(tmp_path), key)
    counters.add_all([((f"name-{number}",), 1.0) for number in range(MOST_UNWRITTEN + 5)])
    counters.write()
    assert counters.unwritten == MOST_UNWRITTEN


def test_a_child_process_does_not_count_for_its_parent(key: str) -> None:
    """Both would write what the parent had counted before the fork."""
    counters = SharedCounters(connect, key)
    os.register_at_fork(after_in_child=counters.start_over)
    counters.add("answers")
    child = os.fork()
    if child == 0:
        counters.add("answers")
        counters.write()
        os._exit(0)
    os.waitpid(child, 0)
    assert counters.read() == {("answers",): 2.0}
