"""Read CSV files of measurements: rows below a header. Errors name file, line and column.

Text is in UTF-8. A file that begins like gzip is decompressed. The file name ``-`` means standard input.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from forecasting.base import LARGEST_VALUE, ForecastingError

_GZIP = b"\x1f\x8b"
_MAX_LINE = 1 << 20  # characters: limits the memory for a file without line ends
_SHOWN_CHARACTERS = 60
_SHOWN_COLUMNS = 10
STANDARD_INPUT = "-"


class UnreadableFile(ForecastingError, ValueError):
    """A file is unusable; the message names file, line and column, and the expected and actual content."""


@dataclass(frozen=True)
class CsvRow:
    """One line of *file*: *cells* has the text of each cell by the name of its column."""

    file: str
    line: int
    cells: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}"

    def text(self, column: str) -> str:
        """Return the text in *column*, which must not be empty."""
        text = self.cells[column].strip()
        if not text:
            raise self.error(column, "a text", text)
        return text

    def number(self, column: str) -> float:
        """Return the number in *column*: finite, and at most ``LARGEST_VALUE``."""
        text = self.cells[column]
        try:
            number = float(text)
        except ValueError:
            raise self.error(column, "a number", text) from None
        if not abs(number) <= LARGEST_VALUE:
            raise self.error(column, f"a finite number of at most {LARGEST_VALUE:g}", text)
        return number

    def time_seconds(self, column: str) -> float:
        """Return the time in *column*, seconds or RFC 3339 (without a zone: UTC), as seconds since 1970."""
        text = self.cells[column].strip()
        try:
            seconds = float(text)
        except ValueError:
            seconds = self._moment(column, text).timestamp()
        if not math.isfinite(seconds):
            raise self.error(column, "a finite time", text)
        return seconds

    def _moment(self, column: str, text: str) -> datetime:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self.error(column, "a time in seconds or as 2026-01-31T12:00:00Z", text) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def error(self, column: str, expected: str, got: str) -> UnreadableFile:
        """Return the error for an invalid cell of *column*."""
        return UnreadableFile(f"{self.place}, {column}: expected {expected}, got {shown(got)}")


def rows(file: str, needed: Collection[str]) -> Iterator[CsvRow]:
    """Yield the rows of *file* in the order of the file, without empty lines.

    Raises:
        UnreadableFile: *file* cannot be opened, is not text, or has no rows; a column of *needed* is missing;
            a column occurs twice; or a row has more or fewer cells than the header.
    """
    with _opened(file) as stream:
        table = csv.reader(_lines(file, stream), strict=True)
        try:
            header, empty = _header(file, next(table, []), needed), True
            for cells in filter(None, table):
                if len(cells) != len(header):
                    expected = f"expected {len(header)} cells as in the header, got {len(cells)}"
                    raise UnreadableFile(f"{file}, line {table.line_num}: {expected}")
                yield CsvRow(file, table.line_num, dict(zip(header, cells, strict=True)))
                empty = False
        except csv.Error as error:
            raise UnreadableFile(f"{file}, line {table.line_num}: expected CSV: {error}") from None
    if empty:
        raise UnreadableFile(f"{file}: expected rows below the header, got none")


def lines(file: str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
    """Yield the lines of *file*, with their line breaks.

    Raises:
        UnreadableFile: *file* cannot be opened, is not text, or is damaged.
    """
    with _opened(file) as stream:
        yield from _lines(file, stream, encoding)


def _header(file: str, cells: Sequence[str], needed: Collection[str]) -> list[str]:
    """Return the names of the columns. Raises UnreadableFile unless the header *cells* have *needed*, and
    each column once."""
    header = [name.strip() for name in cells]
    if not any(header):
        raise UnreadableFile(
            f"{file}: expected a line that names the columns {', '.join(needed)}, got nothing"
        )
    missing = [name for name in needed if name not in header]
    if missing:
        columns = ", ".join(map(shown, header[:_SHOWN_COLUMNS]))
        raise UnreadableFile(f"{file}, line 1: expected a column {missing[0]}, got {columns}")
    name, count = Counter(header).most_common(1)[0]
    if count > 1:
        column = shown(name) if name else "without a name"
        raise UnreadableFile(f"{file}, line 1: the column {column} occurs {count} times")
    return header


def _lines(file: str, stream: BinaryIO, encoding: str = "utf-8-sig") -> Iterator[str]:
    """Yield the lines of *stream*. Raises UnreadableFile for a line that is too long or no text."""
    number = 1
    try:
        # invalid bytes become surrogates, so that the error can name the line
        with io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="") as text:
            while line := text.readline(_MAX_LINE):
                if not line.isascii():
                    line.encode()
                if len(line) == _MAX_LINE:
                    raise UnreadableFile(f"{file}, line {number}: longer than {_MAX_LINE} characters")
                if "\0" in line:
                    raise UnreadableFile(f"{file}, line {number}: expected text, got binary data")
                yield line
                number += 1
    except UnicodeEncodeError:
        raise UnreadableFile(f"{file}, line {number}: expected text in UTF-8, got other bytes") from None
    except (OSError, EOFError, zlib.error) as error:  # gzip raises each of them for damaged files
        raise UnreadableFile(f"{file}, line {number}: cannot read it: {_why(error)}") from None


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """Yield *file* opened for reading bytes, decompressed if it begins like gzip."""
    try:
        raw = os.fdopen(0, "rb", closefd=False) if file == STANDARD_INPUT else Path(file).open("rb")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{file}: cannot open it: {_why(error)}") from None
    with raw:
        yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if _is_compressed(file, raw) else raw


def _is_compressed(file: str, raw: io.BufferedReader) -> bool:
    try:
        return raw.peek(len(_GZIP)).startswith(_GZIP)
    except OSError as error:
        raise UnreadableFile(f"{file}: cannot read it: {_why(error)}") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}..."
