"""SQL of the metrics of the service."""

from __future__ import annotations

from monitor.core.db import binary

MOST_DIRTY_HOURS = 1_000_000  # counted at most


def depot_bytes() -> int:
    """Return the size of the database."""
    return int(binary.row("SELECT pg_database_size(current_database())", {})[0])


def dirty_hours() -> int:
    """Return the number of dirty hours, at most ``MOST_DIRTY_HOURS``."""
    rows = f"SELECT FROM monitor_dirtyhour LIMIT {MOST_DIRTY_HOURS}"
    return int(binary.row(f"SELECT count(*) FROM ({rows}) AS dirty", {})[0])  # noqa: S608
