"""Engines of the depot, one file per kind of database; the database's catalogue determines the engine."""

from __future__ import annotations

from django.db import connection

from monitor.depot.engines import postgres, timescale
from monitor.depot.engines.engine import Engine

_KINDS = """
SELECT samples.relkind, rollups.relkind FROM pg_class AS samples, pg_class AS rollups
WHERE samples.oid = 'monitor_sample'::regclass AND rollups.oid = 'monitor_hourrollup'::regclass
"""
_ENGINES: dict[tuple[str, str], type[Engine]] = {
    ("p", "r"): postgres.PostgresEngine,  # a partitioned table; rollups in tables
    ("r", "r"): timescale.ApacheTimescaleEngine,  # to the catalogue a hypertable is an ordinary table
    ("r", "v"): timescale.TimescaleEngine,  # a continuous aggregate is a view
}


def engine() -> Engine:
    """Return the engine of the connected database.

    Each call asks the catalogue, which takes 0.1 ms: a depot may migrate while processes use it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KINDS)
        return _ENGINES[cursor.fetchone()]()
