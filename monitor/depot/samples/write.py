"""Write samples: many samples by COPY in binary format, few samples by one INSERT."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from django.db import IntegrityError, transaction
from psycopg.errors import UniqueViolation

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays

# What the samples of a run share is sent once: *run* is the position of the run.
_VALUES = Arrays("int8", "float8", "int4")
_RUNS = Arrays("timestamptz", "timestamptz", "bool")
_INSERT = f"""
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT metric, (%b::timestamptz[])[run], (%b::timestamptz[])[run], value, (%b::bool[])[run]
FROM unnest({_VALUES.placeholders}) AS sample (metric, value, run)
ON CONFLICT (metric_id, time) DO NOTHING
"""  # noqa: S608  # constants
_COPY = "COPY monitor_sample (metric_id, time, known_at, value, passed) FROM STDIN (FORMAT binary)"
_HEADER, _TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
# A row in COPY's binary format: the number of columns, then the length and the value of each.
_COPY_ROW = np.dtype(
    [
        ("columns", ">i2"),
        *[("metric_id_bytes", ">i4"), ("metric_id", ">i8")],
        *[("time_bytes", ">i4"), ("time", ">i8")],
        *[("known_at_bytes", ">i4"), ("known_at", ">i8")],
        *[("value_bytes", ">i4"), ("value", ">f8")],
        *[("passed_bytes", ">i4"), ("passed", "?")],
    ]
)
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Samples: fewer are inserted in a pipeline (``ingest.write``), without a savepoint and its round trips.
_COPY_FROM = 300


class SampleRow(NamedTuple):
    """One value to be stored; see ``monitor.models.Sample``."""

    metric_id: int
    time: datetime
    known_at: datetime
    value: float
    passed: bool


class RunSamples(NamedTuple):
    """The values of one run: ``values[i]`` belongs to ``metric_ids[i]``; other fields apply to all values."""

    metric_ids: Sequence[int]
    time: datetime
    known_at: datetime
    values: Sequence[float]
    passed: bool


def write(rows: Iterable[SampleRow]) -> None:
    """Store *rows*; a sample that exists already stays unchanged. Must be called in a transaction."""
    write_runs([RunSamples([row.metric_id], row.time, row.known_at, [row.value], row.passed) for row in rows])


def uses_copy(runs: Sequence[RunSamples]) -> bool:
    """Return whether ``write_runs`` uses COPY for *runs*."""
    return sum(len(run.values) for run in runs) >= _COPY_FROM


def write_runs(runs: Sequence[RunSamples]) -> None:
    """Store all samples of *runs*; see ``write``."""
    if not uses_copy(runs):
        return _insert(runs)
    try:
        with transaction.atomic(), binary.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.write(_HEADER + _copy_rows(runs).tobytes() + _TRAILER)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):  # COPY fails on the first existing sample
            raise
        _insert(runs)
    return None


def _insert(runs: Sequence[RunSamples]) -> None:
    metrics = list(chain.from_iterable(run.metric_ids for run in runs))
    if not metrics:
        return
    values = list(chain.from_iterable(run.values for run in runs))
    numbers = [number for number, run in enumerate(runs, start=1) for _ in run.values]
    of_runs = zip(*((run.time, run.known_at, run.passed) for run in runs), strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_INSERT, [*_RUNS.pack(of_runs), *_VALUES.pack([metrics, values, numbers])])


def _copy_rows(runs: Sequence[RunSamples]) -> np.ndarray[Any, Any]:
    """Return the samples as an array of ``_COPY_ROW``."""
    counts = [len(run.values) for run in runs]
    rows = np.empty(sum(counts), dtype=_COPY_ROW)
    rows["columns"] = len(SampleRow._fields)
    for name in SampleRow._fields:
        rows[f"{name}_bytes"] = rows[name].itemsize
    rows["metric_id"] = list(chain.from_iterable(run.metric_ids for run in runs))
    rows["time"] = np.repeat([_postgres_micros(run.time) for run in runs], counts)
    rows["known_at"] = np.repeat([_postgres_micros(run.known_at) for run in runs], counts)
    rows["value"] = list(chain.from_iterable(run.values for run in runs))
    rows["passed"] = np.repeat([run.passed for run in runs], counts)
    return rows


def _postgres_micros(time: datetime) -> int:
    """Convert *time* to microseconds since PostgreSQL's epoch."""
    return (time - _POSTGRES_EPOCH) // _MICROSECOND
