"""Raw reports as rows, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from monitor.db import binary

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

_TYPES = ("uuid", "timestamptz", "timestamptz", "int2", "bytea", "int2")
_COPY = """
COPY monitor_rawreport (run_id, slot, received_at, packing, packed, parsed_by) FROM STDIN (FORMAT binary)
"""
_INSERT = """
INSERT INTO monitor_rawreport (run_id, slot, received_at, packing, packed, parsed_by)
SELECT * FROM unnest(
    %b::uuid[], %b::timestamptz[], %b::timestamptz[], %b::smallint[], %b::bytea[], %b::smallint[]
)
"""
_MANY = 10  # reports: of fewer, one statement costs less than to begin and end copying


class RawReportRow(NamedTuple):
    """The report of one run, packed; see ``monitor.models.RawReport``."""

    run: uuid.UUID
    slot: datetime
    received_at: datetime
    packing: int
    packed: bytes
    parsed_by: int


def are_copied(rows: Sequence[RawReportRow]) -> bool:
    """Whether ``write`` copies them: they are many."""
    return len(rows) >= _MANY


def write(rows: Sequence[RawReportRow]) -> None:
    """Store *rows*, of runs that have none yet."""
    if are_copied(rows):
        _copy(rows)
    elif rows:
        with binary.cursor() as cursor:
            cursor.execute(_INSERT, [list(column) for column in zip(*rows, strict=True)])


def _copy(rows: Sequence[RawReportRow]) -> None:
    with binary.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_TYPES)
        for row in rows:
            copy.write_row(row)
