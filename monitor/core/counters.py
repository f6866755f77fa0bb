"""Counters that all processes of the service share: added up in memory, written to the broker's server.

A process writes what it has counted about a second after the first count, so a request pays a dictionary
access. A process that is killed loses at most that second. While the server is unavailable, the counts wait.
A server that was emptied starts at 0, which Prometheus handles as a reset.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from redis.exceptions import RedisError

from monitor.core import valkey

if TYPE_CHECKING:
    from redis import Redis

logger = logging.getLogger(__name__)
KEY = "gridcast:counters"
WRITE_AFTER_SECONDS = 1.0
MOST_UNWRITTEN = 10_000  # distinct counters; further ones are dropped while the server is unavailable
SERVER_SECONDS = 1.0

Counter = tuple[str, ...]  # a name, and the values of its labels


class SharedCounters:
    """Counters by name and labels; *connect* returns a client of the server, *key* is their hash there."""

    def __init__(self, connect: Callable[[], Redis], key: str = KEY) -> None:
        self._connect, self._key = connect, key
        self.start_over()

    def start_over(self) -> None:
        """Forget what is not written, as a child process does after a fork: its parent writes it."""
        self._lock = threading.Lock()
        self._counts: defaultdict[Counter, float] = defaultdict(float)
        self._timer: threading.Timer | None = None
        self._client: Redis | None = None

    def add(self, name: str, *labels: str, amount: float = 1.0) -> None:
        """Add *amount* to the counter *name* with the values *labels*."""
        self.add_all([((name, *labels), amount)])

    def add_all(self, amounts: Sequence[tuple[Counter, float]]) -> None:
        with self._lock:
            for counter, amount in amounts:
                if counter in self._counts or len(self._counts) < MOST_UNWRITTEN:
                    self._counts[counter] += amount
            if self._timer is None:
                self._timer = threading.Timer(WRITE_AFTER_SECONDS, self.write)
                self._timer.daemon = True
                self._timer.start()

    def write(self) -> None:
        """Write what was counted since the last call; keep it if the server is unavailable."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(float)
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if not counts:
            return
        try:
            with self.client().pipeline(transaction=True) as pipeline:
                for counter, amount in counts.items():
                    pipeline.hincrbyfloat(self._key, json.dumps(counter), amount)
                pipeline.execute()
        except RedisError as error:
            logger.debug("cannot write counters, they wait: %s", error)
            self._client = None  # the next attempt connects again
            with self._lock:
                for counter, amount in counts.items():
                    self._counts[counter] += amount

    def read(self) -> Mapping[Counter, float]:
        """Return all counters of all processes.

        Raises:
            RedisError: the server is unavailable.
        """
        self.write()
        stored: Mapping[bytes, bytes] = self.client().hgetall(self._key)  # type: ignore[assignment]
        return {tuple(json.loads(field)): float(value) for field, value in stored.items()}

    @property
    def unwritten(self) -> int:
        """The number of counters that wait to be written."""
        return len(self._counts)

    def client(self) -> Redis:
        if self._client is None:
            self._client = self._connect()
        return self._client


def connect() -> Redis:
    """Return a client of the broker's server; it connects with the first command."""
    return valkey.connect(settings.CELERY_BROKER_URL, within_seconds=SERVER_SECONDS)


counters = SharedCounters(connect)
os.register_at_fork(after_in_child=counters.start_over)
atexit.register(counters.write)
