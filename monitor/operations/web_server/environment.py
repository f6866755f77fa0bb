"""What environment variables say about the web: its URL, and limits (``monitor.core.env`` lists them)."""

from __future__ import annotations

import os
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import urlsplit

from monitor.core.env import InvalidVariable, entries, parse_networks, whole_number, without_password


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


def api_requests() -> int:
    """Return how many API requests one caller may send within ten seconds."""
    return whole_number("GRIDCAST_API_REQUESTS", default=20_000, most=999_999_999)


def metrics_allow() -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks whose hosts may read /metrics without a token."""
    name = "GRIDCAST_METRICS_ALLOW"
    return parse_networks(name, entries(name))


def metrics_max_series() -> int:
    """Return the number of series that one answer of /metrics describes at most."""
    return whole_number("GRIDCAST_METRICS_MAX_SERIES", default=10_000, most=1_000_000)


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


def web_url() -> str:
    """Return the public URL of the web without a trailing slash; empty if it is not configured.

    Raises:
        InvalidVariable: it is no such URL, its host is not written as browsers send it, or it has a path:
            gridcast is served at the root of its host.
    """
    text = os.environ.get("GRIDCAST_URL", "").rstrip("/")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number, or the address no IPv6 address
        is_url = False
    if not is_url or not text.isascii() or parts.username is not None:
        raise InvalidVariable(
            "GRIDCAST_URL: expected http:// or https:// and a host in ASCII, such as"
            f" https://gridcast.example.org, got {without_password(text)!r}"
        )
    if parts.path or "?" in text or "#" in text:
        raise InvalidVariable(
            "GRIDCAST_URL: expected no path, because gridcast is served at the root of its host, got"
            f" {text!r}: write {parts.scheme}://{parts.netloc}"
        )
    return text
