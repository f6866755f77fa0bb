"""Very many rows as one array a column.

The database puts the values of some hundred rows together to one, column by column, which is the memory of an
array: a hundred thousand rows take a third of what they take as tuples.
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

ROWS_TOGETHER = 512
SEPARATOR = "\x1f"  # of texts: what has one gets a space for it
NEVER = int(np.iinfo(np.int64).min) + EPOCH  # the time -infinity, in microseconds since 1970

# By kind of column: how a value is sent, and what the memory is then. No value may be NULL: it would be left
# out, and all behind it would be of another row.
_SENT = {
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
    """*columns* says of each name its kind and what it is in SQL; *source* is all from FROM on, without an
    order. *key* is a number of each row, in SQL.

    Kinds are ``integer``, ``time`` (microseconds since 1970, UTC; -infinity is ``NEVER``), ``run``,
    ``letter``, ``outcomes`` (20 letters a row), ``means`` (24 numbers a row), ``text``
    and ``name``, a text that is a slug.
    """
    put = ", ".join(_put_together(kind, said) for kind, said in columns.values())
    # Some rows at a time: a value of many megabytes costs more to grow than to send.
    query = f"SELECT {put} {source} GROUP BY {key} / {ROWS_TOGETHER}"  # our own words
    with binary.cursor() as cursor:
        cursor.execute(query.encode(), parameters, prepare=False, binary=True)
        values = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(columns)
    return {
        name: _array(kind, parts) for (name, (kind, _)), parts in zip(columns.items(), values, strict=True)
    }


def _put_together(kind: str, said: str) -> str:
    if kind == "text":  # most often there is none
        cleaned = f"CASE {said} WHEN '' THEN '' ELSE translate({said}, '{SEPARATOR}', ' ') END"
        return f"string_agg({cleaned}, '{SEPARATOR}')"
    if kind == "name":
        return f"string_agg({said}, '{SEPARATOR}')"
    return f"string_agg({_SENT[kind][0].format(said)}, ''::bytea)"


def _array(kind: str, parts: Sequence[Any]) -> NDArray[Any]:
    if kind in {"text", "name"}:
        return np.array([text for part in parts for text in part.split(SEPARATOR)], dtype=object)
    found = np.frombuffer(b"".join(parts), _SENT[kind][1])
    if kind == "time":
        return found.astype(np.int64) + EPOCH
    if kind == "integer":
        return found.astype(np.int64)
    if kind == "means":
        return found.astype(np.float32)
    return found.reshape(-1, TREND_RUNS) if kind == "outcomes" else found
