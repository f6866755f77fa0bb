"""Write raw reports, many in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

_TYPES = ("uuid", "timestamptz", "timestamptz", "int2", "bytea", "int2")
_ROWS = Arrays(*_TYPES)
_COPY = """
COPY monitor_rawreport (run_id, slot, received_at, packing, packed, parsed_by) FROM STDIN (FORMAT binary)
"""
_INSERT = f"""
INSERT INTO monitor_rawreport (run_id, slot, received_at, packing, packed, parsed_by)
SELECT * FROM unnest({_ROWS.placeholders})
"""  # noqa: S608  # constants
_COPY_FROM = 40  # reports: fewer are inserted in a pipeline (``ingest.write``), which COPY would interrupt


class RawReportRow(NamedTuple):
    """The compressed report of one run; see ``monitor.models.RawReport``."""

    run: uuid.UUID
    slot: datetime
    received_at: datetime
    packing: int
    packed: bytes
    parsed_by: int


def uses_copy(rows: Sequence[RawReportRow]) -> bool:
    """Return whether ``write`` uses COPY for *rows*."""
    return len(rows) >= _COPY_FROM


def write(rows: Sequence[RawReportRow]) -> None:
    """Store *rows* of runs that have no report yet."""
    if uses_copy(rows):
        with binary.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.set_types(_TYPES)
            for row in rows:
                copy.write_row(row)
    elif rows:
        with binary.cursor() as cursor:
            cursor.execute(_INSERT, _ROWS.pack(zip(*rows, strict=True)))
