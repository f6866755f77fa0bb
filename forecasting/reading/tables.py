"""CSV files of measurements: rows below a header. What is wrong is refused with its place.

Text is UTF-8; a file that begins like gzip is unpacked; ``-`` is what comes in at standard input.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from forecasting.base import LARGEST_VALUE, ForecastingError

_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 1 << 20  # of characters: something without lines shall not be read into memory
_SHOWN_CHARACTERS = 60
_SHOWN_COLUMNS = 10
STANDARD_INPUT = "-"


class UnreadableFile(ForecastingError, ValueError):
    """A file that cannot be worked with; the message says where, what was expected, and what was found."""


@dataclass(frozen=True)
class Row:
    """One line of *file*, its cells by the names of their columns."""

    file: str
    line: int
    cells: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}"

    def text(self, column: str) -> str:
        """What stands in *column*, which must not be empty."""
        found = self.cells[column].strip()
        if not found:
            raise self.refused(column, "a text", found)
        return found

    def number(self, column: str) -> float:
        """The number in *column*: finite, and no larger than ``LARGEST_VALUE``."""
        found = self.cells[column]
        try:
            number = float(found)
        except ValueError:
            raise self.refused(column, "a number", found) from None
        if not abs(number) <= LARGEST_VALUE:
            raise self.refused(column, f"a finite number of at most {LARGEST_VALUE:g}", found)
        return number

    def time_seconds(self, column: str) -> float:
        """The time in *column*, seconds since 1970 or RFC 3339 (without a zone UTC is meant), as seconds."""
        found = self.cells[column].strip()
        try:
            seconds = float(found)
        except ValueError:
            seconds = self._moment(column, found).timestamp()
        if not math.isfinite(seconds):
            raise self.refused(column, "a finite time", found)
        return seconds

    def _moment(self, column: str, found: str) -> datetime:
        try:
            moment = datetime.fromisoformat(found)
        except ValueError:
            raise self.refused(column, "a time in seconds or as 2026-01-31T12:00:00Z", found) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def refused(self, column: str, expected: str, found: str) -> UnreadableFile:
        return UnreadableFile(f"{self.place}, {column}: expected {expected}, got {shown(found)}")


def rows(file: str, needed: Collection[str]) -> Iterator[Row]:
    """The rows of *file* in its order; lines that are empty are passed over.

    Raises:
        UnreadableFile: the file cannot be opened or is no text, a column of *needed* is missing or occurs
            twice, a row has not as many cells as the header, or there are no rows.
    """
    with _opened(file) as stream:
        table = csv.reader(_lines(file, stream), strict=True)
        try:
            header, empty = _header(file, next(table, []), needed), True
            for cells in filter(None, table):
                if len(cells) != len(header):
                    expected = f"expected {len(header)} cells as in the header, got {len(cells)}"
                    raise UnreadableFile(f"{file}, line {table.line_num}: {expected}")
                yield Row(file, table.line_num, dict(zip(header, cells, strict=True)))
                empty = False
        except csv.Error as error:
            raise UnreadableFile(f"{file}, line {table.line_num}: this is no CSV: {error}") from None
    if empty:
        raise UnreadableFile(f"{file}: there is nothing below the header")


def lines(file: str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
    """The lines of *file*, with their ends, whatever they mean.

    Raises:
        UnreadableFile: there is no such file, it is no text, it is damaged.
    """
    with _opened(file) as stream:
        yield from _lines(file, stream, encoding)


def _header(file: str, cells: Sequence[str], needed: Collection[str]) -> list[str]:
    """The names of the columns."""
    header = [name.strip() for name in cells]
    if not any(header):
        raise UnreadableFile(
            f"{file}: expected a line that names the columns {', '.join(needed)}, got nothing"
        )
    missing = [name for name in needed if name not in header]
    if missing:
        found = ", ".join(map(shown, header[:_SHOWN_COLUMNS]))
        raise UnreadableFile(f"{file}, line 1: expected a column {missing[0]}, got {found}")
    twice = [name for name in needed if header.count(name) > 1]
    if twice:
        raise UnreadableFile(f"{file}, line 1: the column {twice[0]} is there {header.count(twice[0])} times")
    return header


def _lines(file: str, stream: BinaryIO, encoding: str = "utf-8-sig") -> Iterator[str]:
    """The lines of *stream*; none is longer than is sensible, so that nothing fills the memory."""
    number = 1
    try:
        # what is no text comes as surrogates: where it is would not be told of what is decoded at a time
        with io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="") as text:
            while line := text.readline(_LONGEST_LINE):
                if not line.isascii():
                    line.encode()
                if len(line) == _LONGEST_LINE:
                    raise UnreadableFile(f"{file}, line {number}: longer than {_LONGEST_LINE} characters")
                if "\0" in line:
                    raise UnreadableFile(f"{file}, line {number}: expected text, got bytes of something else")
                yield line
                number += 1
    except UnicodeEncodeError:
        raise UnreadableFile(f"{file}, line {number}: expected text in UTF-8, got other bytes") from None
    except (OSError, EOFError, zlib.error) as error:  # gzip has one of its own for each way to be damaged
        raise UnreadableFile(f"{file}, line {number}: cannot read it: {_why(error)}") from None


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """*file* as it is, or unpacked."""
    try:
        raw = os.fdopen(0, "rb", closefd=False) if file == STANDARD_INPUT else Path(file).open("rb")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{file}: cannot open it: {_why(error)}") from None
    with raw:
        yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if _is_packed(file, raw) else raw


def _is_packed(file: str, raw: io.BufferedReader) -> bool:
    try:
        return raw.peek(len(_GZIP)).startswith(_GZIP)
    except OSError as error:
        raise UnreadableFile(f"{file}: cannot read it: {_why(error)}") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}..."
