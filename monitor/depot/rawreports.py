"""Raw reports as rows, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from monitor.depot import binary

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

_TYPES = ("uuid", "timestamptz", "timestamptz", "int2", "bytea", "int2")
_COPY = """
COPY monitor_rawreport (run_id, slot, received_at, packing, packed, parsed_by) FROM STDIN (FORMAT binary)
"""
_INSERT = """
INSERT INTO monitor_rawreport (run_id, slot, received_at, packing, packed, parsed_by)
VALUES (%b, %b, %b, %b, %b, %b)
"""


class Row(NamedTuple):
    """The report of one run, packed; see ``monitor.models.RawReport``."""

    run: uuid.UUID
    slot: datetime
    received_at: datetime
    packing: int
    packed: bytes
    parsed_by: int


def write(rows: Sequence[Row]) -> None:
    """Store *rows*, of runs that have none yet."""
    with binary.cursor() as cursor:
        if len(rows) == 1:
            cursor.execute(_INSERT, rows[0])
            return
        with cursor.copy(_COPY) as copy:
            copy.set_types(_TYPES)
            for row in rows:
                copy.write_row(row)
