"""What importers of CSV share: rows by the names of their columns, however the first of them was written."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from monitor.imports.formats import text
from monitor.imports.formats.base import Malformed, Unreadable

Row = Mapping[str, str]


def rows(
    stream: BinaryIO, columns: Iterable[str], *, delimiter: str = ",", header: bool = True
) -> Iterator[tuple[str, Row] | Malformed]:
    """(where, row) of each line with anything in it; columns are named by the first or, without *header*, by
    their numbers from 1 on.

    Where the first row has a field more than the header, its first has no name: so pandas writes.

    Raises:
        Unreadable: one of *columns* is not there.
    """
    reader = csv.reader(text.lines(stream), delimiter=delimiter)
    names: list[str] = []
    is_first = True
    for fields in _read(reader):
        where = f"line {reader.line_num}"
        if isinstance(fields, csv.Error):
            yield Malformed(where, "line", "a line of CSV", str(fields))
            continue
        if not names:
            names = _names(fields) if header else [str(place) for place in range(1, len(fields) + 1)]
            _check(names, columns)
            if header:
                continue
        if is_first and len(fields) == len(names) + 1:
            names = ["", *names]
        is_first = False
        if len(fields) == len(names):
            yield where, dict(zip(names, fields, strict=True))
        else:
            yield Malformed(where, "line", f"{len(names)} fields as in the first line", str(len(fields)))


def _read(reader: Iterator[list[str]]) -> Iterator[list[str] | csv.Error]:
    """What there is in each line with anything in it, or why it cannot be read."""
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
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise Unreadable(f"line 1: expected columns with different names, got {twice[0]!r} more than once")
    return names


def _check(names: list[str], columns: Iterable[str]) -> None:
    for column in columns:
        if column not in names:
            known = text.printable(", ".join(name for name in names[:40] if name)[:500])
            raise Unreadable(f"line 1: expected a column {column!r}; there are {known}")


def optional(row: Row, column: str) -> float | None:
    """The number in *column*; None where it is empty, or there is no such column. Raises Misfit."""
    said = row.get(column, "").strip()
    return text.number(column, said) if said else None
