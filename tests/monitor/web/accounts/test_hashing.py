"""Passwords are hashed by one thread of low priority, and any number of requests get their own answer."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from monitor.web.accounts.hashing import NICENESS, Argon2

CALLERS = 4


class Watched(Argon2):
    """Notes the niceness of the threads that hash."""

    time_cost, memory_cost = 1, 64
    niceness: set[int]

    def params(self) -> object:
        """Called in the thread that hashes."""
        self.niceness.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return super().params()


def test_hashes_of_many_callers_are_right() -> None:
    hasher = Argon2()
    hasher.time_cost, hasher.memory_cost = 1, 64

    def is_right(number: int) -> bool:
        encoded = hasher.encode(f"secret {number}", f"salt number {number}")
        return hasher.verify(f"secret {number}", encoded) and not hasher.verify("another", encoded)

    with ThreadPoolExecutor(CALLERS) as callers:
        assert all(callers.map(is_right, range(CALLERS)))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a niceness is that of the process")
def test_only_the_thread_that_hashes_yields_to_others() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    hasher = Watched()
    hasher.niceness = set()
    hasher.encode("secret", "salt of many")
    assert min(hasher.niceness) >= NICENESS
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
