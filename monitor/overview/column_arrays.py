"""Read many rows as one numpy array per column.

PostgreSQL aggregates the values of 512 rows, column by column, into one value whose bytes are the memory of
an array. Reading 100,000 rows this way takes a third of the time of reading them as tuples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.db import binary
from monitor.db.timestamps import EPOCH
from monitor.models.latest_run import HOURS, TREND_RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

ROWS_PER_VALUE = 512  # a value of many megabytes costs more to grow than to send
SEPARATOR = "\x1f"  # between texts; a text that contains it gets a space instead
NEVER = int(np.iinfo(np.int64).min) + EPOCH  # -infinity, in microseconds since 1970

# By kind of column: the SQL that encodes a value, and the type of the bytes. No value may be NULL: it would
# be left out, and shift all following rows.
_ENCODINGS = {
    "integer": ("int8send({})", np.dtype(">i8")),
    "time": ("timestamptz_send({})", np.dtype(">i8")),
    "run": ("uuid_send({})", np.dtype("V16")),
    "letter": ("rpad({}, 1)::bytea", np.dtype("S1")),
    "outcomes": (f"rpad({{}}, {TREND_RUNS})::bytea", np.dtype("S1")),
    "means": ("{}", np.dtype((">f4", HOURS))),
}


def read(
    columns: Mapping[str, tuple[str, str]], key: str, source: str, parameters: Sequence[object]
) -> dict[str, NDArray[Any]]:
    """Return an array for each of *columns*, by name; the rows are in no order.

    Args:
        columns: (kind, SQL expression) by name.
        key: an SQL expression, an integer that differs from row to row.
        source: the statement from FROM on, with *parameters*.

    Kinds are ``integer``, ``time`` (microseconds since 1970, UTC; -infinity is ``NEVER``), ``run`` (16
    bytes), ``letter``, ``outcomes`` (20 letters per row), ``means`` (24 numbers per row), ``text``, and
    ``name``, a text that is a slug.
    """
    aggregates = ", ".join(_aggregate(kind, expression) for kind, expression in columns.values())
    query = f"SELECT {aggregates} {source} GROUP BY {key} / {ROWS_PER_VALUE}"  # user input is in *parameters*
    with binary.cursor() as cursor:
        cursor.execute(query.encode(), parameters, prepare=False, binary=True)
        values = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(columns)
    return {
        name: _array(kind, parts) for (name, (kind, _)), parts in zip(columns.items(), values, strict=True)
    }


def _aggregate(kind: str, expression: str) -> str:
    if kind == "text":  # empty in most rows
        cleaned = f"CASE {expression} WHEN '' THEN '' ELSE translate({expression}, '{SEPARATOR}', ' ') END"
        return f"string_agg({cleaned}, '{SEPARATOR}')"
    if kind == "name":
        return f"string_agg({expression}, '{SEPARATOR}')"
    return f"string_agg({_ENCODINGS[kind][0].format(expression)}, ''::bytea)"


def _array(kind: str, parts: Sequence[Any]) -> NDArray[Any]:
    if kind in {"text", "name"}:
        return np.array([text for part in parts for text in part.split(SEPARATOR)], dtype=object)
    values = np.frombuffer(b"".join(parts), _ENCODINGS[kind][1])
    if kind == "time":
        return values.astype(np.int64) + EPOCH
    if kind == "integer":
        return values.astype(np.int64)
    if kind == "means":
        return values.astype(np.float32)
    return values.reshape(-1, TREND_RUNS) if kind == "outcomes" else values
