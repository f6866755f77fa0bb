"""The contract of export formats: all values once, in order, read back unchanged, in bounded memory."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest

from monitor.depot.samples import formats
from monitor.depot.samples.formats.base import UnknownFormat, Value

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
VALUES = [
    Value("total.seconds", NOON, NOON + SECOND, 0.1 + 0.2, "seconds", "passed", 1),
    Value('rate "a", b\n.bytes_per_second', NOON, NOON + SECOND, 1e300, "bytes_per_second", "passed", 1),
    Value("Zürich.seconds", NOON + SECOND / 3, NOON + SECOND, -5e-324, "seconds", "failed", 2),
    Value("total.seconds", NOON + SECOND / 3, None, None, "seconds", "failed", 2),
    Value("total.seconds", NOON + SECOND, None, None, "seconds", "missed", None),
]
PLENTY = 120_000

every_form = pytest.mark.parametrize("form", formats.names())


def of_csv(file: bytes) -> list[dict[str, Any]]:
    rows = list(csv.DictReader(io.StringIO(file.decode(), newline="")))
    kinds: dict[str, Callable[[str], Any]] = {
        "time": datetime.fromisoformat,
        "known_at": datetime.fromisoformat,
        "value": float,
        "segment": int,
    }
    return [
        {name: (kinds.get(name, str)(text) if text else None) for name, text in row.items()} for row in rows
    ]


def of_ndjson(file: bytes) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in file.splitlines()]
    for row in rows:
        for name in ("time", "known_at"):
            row[name] = datetime.fromisoformat(row[name]) if row[name] else None
    return rows


def of_parquet(file: bytes) -> list[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(pa.BufferReader(file)).to_pylist()
    return rows


READ: Mapping[str, Callable[[bytes], list[dict[str, Any]]]] = {
    "csv": of_csv,
    "ndjson": of_ndjson,
    "parquet": of_parquet,
}


def many(count: int) -> Iterator[Value]:
    """Make values one by one."""
    for number in range(count):
        time = NOON + number * SECOND
        yield Value(f"stage.{number % 9}.seconds", time, time, number / 7, "seconds", "passed", 1)


def peak_bytes(form: str, count: int) -> int:
    """Export *count* values; return the peak of memory that Python and Arrow allocated meanwhile.

    Allocated, not resident: allocators of libraries keep freed pages as they like.
    """
    import pyarrow as pa  # takes half a second

    tracemalloc.reset_peak()
    before, arrow = tracemalloc.get_traced_memory()[0], 0
    for _ in formats.load(form)("circle").chunks(many(count)):
        arrow = max(arrow, pa.total_allocated_bytes())
    return tracemalloc.get_traced_memory()[1] - before + arrow


@every_form
def test_every_format_has_a_reader(form: str) -> None:
    assert form in READ


@every_form
def test_every_value_is_read_back_unchanged(form: str) -> None:
    export = formats.load(form)("circle")
    rows = READ[form](b"".join(export.chunks(iter(VALUES))))
    assert [Value(**row) for row in rows] == VALUES


@every_form
def test_an_export_without_values_is_a_complete_file(form: str) -> None:
    assert READ[form](b"".join(formats.load(form)("circle").chunks(iter(())))) == []


@every_form
@pytest.mark.nightly
def test_more_values_take_no_more_memory(form: str) -> None:
    """Three times as many values would take three times as much, as values or encoded."""
    batch = getattr(import_module(f"{formats.__name__}.{form}"), "ROWS", 20_000)
    tracemalloc.start()
    try:
        peak_bytes(form, 2 * batch)  # fills the caches of libraries
        few, thrice = (peak_bytes(form, batches * batch) for batches in (2, 6))
    finally:
        tracemalloc.stop()
    assert thrice < 1.5 * few


@every_form
def test_the_first_bytes_come_before_the_last_values_are_asked_for(form: str) -> None:
    values = many(PLENTY)
    assert next(iter(formats.load(form)("circle").chunks(values)))
    assert len(list(values)) > PLENTY / 2


def test_the_parquet_schema_describes_its_columns() -> None:
    import pyarrow as pa
    from pyarrow import parquet

    file = b"".join(formats.load("parquet")("circle").chunks(iter(VALUES)))
    schema = parquet.read_schema(pa.BufferReader(file))
    assert schema.metadata[b"series"] == b"circle"
    assert schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert schema.field("value").metadata[b"is"] == b"in the unit that the column unit says"


def test_an_unknown_format_imports_nothing() -> None:
    for form in ("xlsx", "base", "../csv", "os"):
        with pytest.raises(UnknownFormat, match=r"known are csv,.* ndjson, parquet"):
            formats.load(form)
