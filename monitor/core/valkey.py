"""Clients of the broker's server (Valkey) for what processes share there: counters, limits, the cache.

Nothing waits for that server: a client neither retries nor waits for longer than its caller can. While the
server is unavailable (any ``redis.RedisError``), each process uses its own state, and tries the server again
after ``PAUSE_SECONDS``.
"""

from __future__ import annotations

from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PAUSE_SECONDS = 5.0


def connect(broker_url: str, *, within_seconds: float) -> Redis:
    """Return a client of the server at *broker_url*, in Celery's form; it connects with the first command."""
    return Redis.from_url(server_url(broker_url), **options(within_seconds))


def server_url(broker_url: str) -> str:
    """Return the URL as redis-py has it."""
    return broker_url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=")


def options(within_seconds: float) -> dict[str, Any]:
    """Return the options of a client whose commands fail after *within_seconds*."""
    return {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": within_seconds,
        "socket_connect_timeout": within_seconds,
    }
