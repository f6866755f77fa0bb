"""One kind of database per file; which one this is, is told by its catalogue."""

from __future__ import annotations

from django.db import connection

from monitor.depot.engines import postgres, timescale
from monitor.depot.engines.engine import Engine

_KINDS = """
SELECT samples.relkind, rollups.relkind FROM pg_class AS samples, pg_class AS rollups
WHERE samples.oid = 'monitor_sample'::regclass AND rollups.oid = 'monitor_hourrollup'::regclass
"""
_ENGINES: dict[tuple[str, str], type[Engine]] = {
    ("p", "r"): postgres.Plain,  # a partitioned table; rollups in tables
    ("r", "r"): timescale.Apache,  # a hypertable is an ordinary table to the catalogue
    ("r", "v"): timescale.Timescale,  # a continuous aggregate is a view
}


def engine() -> Engine:
    """The engine of the database that is connected to.

    Asked each time, for a tenth of a millisecond: a depot may go over to another while we run.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KINDS)
        return _ENGINES[cursor.fetchone()]()
