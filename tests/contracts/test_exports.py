"""What every form of export owes: all values, once, in order, read back as they were; and little memory."""

from __future__ import annotations

import csv
import io
import json
import resource
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

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
    rows: list[dict[str, Any]] = parquet.read_table(pa.BufferReader(file)).to_pylist()
    return rows


READ = {"csv": of_csv, "ndjson": of_ndjson, "parquet": of_parquet}


def many(count: int) -> Iterator[Value]:
    """Values that are made when they are asked for."""
    for number in range(count):
        time = NOON + number * SECOND
        yield Value(f"stage.{number % 9}.seconds", time, time, number / 7, "seconds", "passed", 1)


def resident_bytes() -> int:
    """What this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@every_form
def test_there_is_a_reader_for_every_form(form: str) -> None:
    assert form in READ


@every_form
def test_every_value_is_read_back_as_it_was(form: str) -> None:
    export = formats.load(form)("circle")
    rows = READ[form](b"".join(export.chunks(iter(VALUES))))
    assert [Value(**row) for row in rows] == VALUES


@every_form
def test_of_no_values_there_is_a_whole_file(form: str) -> None:
    assert READ[form](b"".join(formats.load(form)("circle").chunks(iter(())))) == []


@every_form
def test_more_values_take_no_more_memory(form: str) -> None:
    """Together they would take twice as much, or more, whether as values or as what became of them."""
    before = 0
    for count in (PLENTY // 4, PLENTY):  # what libraries keep for themselves they have after the first
        before = resident_bytes()
        for _ in formats.load(form)("circle").chunks(many(count)):
            pass
    assert resident_bytes() - before < 6_000_000


@every_form
def test_the_first_bytes_come_before_the_last_values_are_asked_for(form: str) -> None:
    values = many(PLENTY)
    assert next(iter(formats.load(form)("circle").chunks(values)))
    assert len(list(values)) > PLENTY / 2


def test_the_schema_of_parquet_says_what_its_columns_are() -> None:
    file = b"".join(formats.load("parquet")("circle").chunks(iter(VALUES)))
    schema = parquet.read_schema(pa.BufferReader(file))
    assert schema.metadata[b"series"] == b"circle"
    assert schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert schema.field("value").metadata[b"is"] == b"in the unit that the column unit says"


def test_a_form_that_there_is_not_imports_nothing() -> None:
    for form in ("xlsx", "base", "../csv", "os"):
        with pytest.raises(UnknownFormat, match="known are csv, ndjson, parquet"):
            formats.load(form)
