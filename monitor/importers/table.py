"""What importers of CSV share: rows by the names of their columns, however the first of them was written."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from monitor.importers import text
from monitor.importers.base import Malformed, Unreadable

Row = Mapping[str, str]


def rows(
    stream: BinaryIO, *, delimiter: str = ",", header: bool = True
) -> Iterator[tuple[str, Row] | Malformed]:
    """(where, row) of each line with anything in it; columns are named by the first or, without *header*, by
    their numbers from 1 on.

    Where all rows have a field more than the header, the first is a column without a name: so pandas writes.
    """
    reader = csv.reader(text.lines(stream), delimiter=delimiter)
    names: list[str] | None = None
    is_first = True
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Malformed(f"line {reader.line_num}", "line", "a line of CSV", str(error))
            continue
        if not fields:
            continue
        where = f"line {reader.line_num}"
        if names is None:
            names = _names(fields) if header else [str(place) for place in range(1, len(fields) + 1)]
            if header:
                continue
        if is_first and len(fields) == len(names) + 1:
            names = ["", *names]
        is_first = False
        if len(fields) != len(names):
            yield Malformed(where, "line", f"{len(names)} fields as in the first line", str(len(fields)))
        else:
            yield where, dict(zip(names, fields, strict=True))


def field(row: Row, column: str) -> str:
    """The text in *column*. Raises Unreadable: there is no such column, in no row."""
    try:
        return row[column].strip()
    except KeyError:
        known = ", ".join(name for name in list(row)[:40] if name)
        raise Unreadable(f"there is no column {column!r}; there are {known}") from None


def optional(row: Row, column: str) -> float | None:
    """The number in *column*; None where it is empty, or there is no such column. Raises Misfit."""
    said = row.get(column, "").strip()
    return text.number(column, said) if said else None


def _names(fields: list[str]) -> list[str]:
    names = [name.strip() for name in fields]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise Unreadable(f"line 1: expected columns with different names, got {twice[0]!r} more than once")
    return names
