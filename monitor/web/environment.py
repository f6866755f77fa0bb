"""What environment variables say about the limits of web processes (``monitor.env`` lists them)."""

from __future__ import annotations

import os

from monitor.env import InvalidVariable, whole_number


def processor_seconds() -> float:
    """Return the seconds of processor time that a user, reporter or ping key may take within ten seconds."""
    return _positive("GRIDCAST_PROCESSOR_SECONDS", 15.0)


def anonymous_processor_seconds() -> float:
    """Return the same for the requests of an address without a login."""
    return _positive("GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS", 1.0)


def web_max_bytes() -> int | None:
    """Return the memory in bytes beyond which a web process is replaced; None is the default."""
    name = "GRIDCAST_WEB_MAX_BYTES"
    return int(_positive(name, 0.0)) if os.environ.get(name) else None


def connections_per_address() -> int:
    """Return how many connections one address may have in a web process."""
    return whole_number("GRIDCAST_CONNECTIONS_PER_ADDRESS", default=100, most=999_999)


def statement_seconds() -> int:
    """Return after how many seconds PostgreSQL cancels a statement of the web server."""
    return whole_number("GRIDCAST_WEB_STATEMENT_SECONDS", default=30, most=3600)


def _positive(name: str, default: float) -> float:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e15:
        raise InvalidVariable(f"{name}: expected a number above 0, got {text!r}")
    return value
