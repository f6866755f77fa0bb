"""Read CSV rows as mappings by column name."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import MalformedRecord, Unreadable

CsvRow = Mapping[str, str]


def rows(
    stream: BinaryIO, columns: Iterable[str], *, delimiter: str = ",", header: bool = True
) -> Iterator[tuple[str, CsvRow] | MalformedRecord]:
    """Yield (where, row) for each line that is not empty; *where* names the line, for messages.

    The first line names the columns; without *header* their names are their numbers, from 1. If the first row
    has one field more than the header, the first column has an empty name: pandas writes an index in this
    way.

    Raises:
        Unreadable: one of *columns* is missing.
    """
    reader = csv.reader(text.lines(stream), delimiter=delimiter)
    names: list[str] = []
    is_first = True
    for fields in _read(reader):
        where = f"line {reader.line_num}"
        if isinstance(fields, csv.Error):
            yield MalformedRecord(where, "line", "a line of CSV", str(fields))
            continue
        if not names:
            names = _names(fields) if header else [str(number) for number in range(1, len(fields) + 1)]
            _check(names, columns)
            if header:
                continue
        if is_first and len(fields) == len(names) + 1:
            names = ["", *names]
        is_first = False
        if len(fields) == len(names):
            yield where, dict(zip(names, fields, strict=True))
        else:
            yield MalformedRecord(
                where, "line", f"{len(names)} fields, as in the first line", str(len(fields))
            )


def _read(reader: Iterator[list[str]]) -> Iterator[list[str] | csv.Error]:
    """Yield the fields of each line that is not empty, or the error of the line."""
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield error
        else:
            if fields:
                yield fields


def _names(fields: list[str]) -> list[str]:
    names = [name.strip() for name in fields]
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise Unreadable(f"line 1: expected distinct column names, got {repeated[0]!r} more than once")
    return names


def _check(names: list[str], columns: Iterable[str]) -> None:
    for column in columns:
        if column not in names:
            present = text.printable(", ".join(name for name in names[:40] if name)[:500])
            raise Unreadable(f"line 1: expected a column {column!r}; there are {present}")


def optional(row: CsvRow, column: str) -> float | None:
    """Return the number in *column*; None if the field is empty or the column is missing.

    Raises:
        InvalidField: the field contains other text.
    """
    value = row.get(column, "").strip()
    return text.number(column, value) if value else None
