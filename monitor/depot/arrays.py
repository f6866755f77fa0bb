"""Samples of one metric as numpy arrays: what is computed with, where ``samples`` has what is shown.

The database puts the rows together to one value in its binary format, which is the memory of an array: two
years of hours take 8 ms so, by COPY in binary 15 to 20 (each row is a message), as tuples 120, as models 180.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
from django.db import connection
from psycopg import sql

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC: the same number that ``datetime64[us]`` is.
SAMPLE = np.dtype([("time", "<i8"), ("known_at", "<i8"), ("value", "<f8"), ("passed", "?")])

_SINCE = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH = 946_684_800_000_000  # of PostgreSQL: 2000-01-01, in microseconds since 1970
_TIMES = ("time", "known_at")
_PACKED = sql.SQL(
    "SELECT string_agg(timestamptz_send(time) || timestamptz_send(known_at) || float8send(value)"
    " || boolsend(passed), ''::bytea ORDER BY time)"
    " FROM (SELECT time, known_at, value, passed FROM monitor_sample WHERE {} ORDER BY time {} LIMIT {}) AS s"
)
_WHERE = {
    "start": sql.SQL("time >= {}"),
    "end": sql.SQL("time <= {}"),
    "known_by": sql.SQL("known_at <= {}"),
}


def read(
    metric_id: int,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    passed_only: bool = True,
    newest: int | None = None,
) -> NDArray[np.void]:
    """``SAMPLE`` by ``SAMPLE`` in order of time; the selections are those of ``samples.read``."""
    wanted = {"start": start, "end": end, "known_by": known_by}
    where: list[sql.Composable] = [sql.SQL("metric_id = {}").format(metric_id)]
    where += [_WHERE[name].format(time) for name, time in wanted.items() if time is not None]
    where += [sql.SQL("passed")] if passed_only else []
    order = sql.SQL("ASC" if newest is None else "DESC")
    return _unpacked(_one_value(_PACKED.format(sql.SQL(" AND ").join(where), order, newest)))


def _one_value(query: sql.Composed) -> bytes | None:
    """The value that *query* gives, in binary: Django's own cursors know texts only."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor[Any](connection.connection) as cursor:
        row = cursor.execute(query, binary=True).fetchone()
    return row[0] if row else None


def _unpacked(packed: bytes | None) -> NDArray[np.void]:
    """Samples out of the format of the database, which has the highest byte first."""
    rows = np.frombuffer(packed or b"", SAMPLE.newbyteorder(">")).astype(SAMPLE)
    for name in _TIMES:
        rows[name] += EPOCH
    return rows


def before(end: datetime | None) -> datetime | None:
    """The last time before *end* that there is."""
    return None if end is None else end - timedelta(microseconds=1)


def micros(time: datetime) -> int:
    """*time*, which has a zone, as arrays have it."""
    return (time - _SINCE) // timedelta(microseconds=1)


def moment(time: int) -> datetime:
    """The inverse of ``micros``."""
    return _SINCE + timedelta(microseconds=int(time))
