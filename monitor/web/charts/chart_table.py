"""The values that a chart shows as a table: for readers who do not see the chart, and as a file."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from monitor.core.csvfile import to_csv
from monitor.core.units import humanised
from monitor.runs.ledger.attribution import STATE_LABELS, outcome_label

ROWS_A_PAGE = 30
TIME = "time"  # the unit of a column of times
DAY = "day"  # the unit of a column of days (UTC), as times of their beginning


@dataclass(frozen=True)
class Column:
    """A column: its label on the page, its name in files, and its unit; empty for texts."""

    label: str
    name: str
    unit: str = ""


@dataclass(frozen=True)
class TablePage:
    """One page of the rows of a table, as texts and times, newest first; rows and pages count from 1."""

    rows: Sequence[Sequence[str | datetime]]
    number: int
    pages: int
    first: int
    row_count: int

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


@dataclass(frozen=True)
class ChartTable:
    """Rows in order of time; None is a missing value."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    @property
    def labels(self) -> list[str]:
        return [column.label for column in self.columns]

    def page(self, number: int) -> TablePage:
        """Return the page *number* of the rows, from 1; the last one if there are not so many."""
        count = len(self.rows)
        pages = max(math.ceil(count / ROWS_A_PAGE), 1)
        number = min(max(number, 1), pages)
        first = (number - 1) * ROWS_A_PAGE
        units = [column.unit for column in self.columns]
        rows = [
            [_text(value, unit) for value, unit in zip(row, units, strict=True)]
            for row in self.rows[::-1][first : first + ROWS_A_PAGE]
        ]
        return TablePage(rows, number, pages, first + 1, count)


def _text(value: Any, unit: str) -> str | datetime:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}" if unit == DAY else value
    if unit:
        return humanised(value, unit)
    return outcome_label(value) if value in STATE_LABELS else str(value)


def as_csv(table: ChartTable) -> bytes:
    heading = [column.name for column in table.columns]
    rows = ([_plain(value) for value in row] for row in table.rows)
    return to_csv([heading, *rows], line_end="\n").encode()


def as_json(table: ChartTable) -> bytes:
    """Return a list of objects, one for each row."""
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, map(_plain, row), strict=True)) for row in table.rows]
    return json.dumps(rows, allow_nan=False).encode()


def as_parquet(table: ChartTable) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  # takes a while to load: only readers of Parquet wait for it
    from pyarrow import parquet  # noqa: PLC0415

    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    fields = [
        pa.field(column.name, _arrow_type(pa, column), metadata={"unit": column.unit})
        for column in table.columns
    ]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, fields, strict=True)]
    sink = io.BytesIO()
    parquet.write_table(pa.table(arrays, schema=pa.schema(fields)), sink, compression="zstd")
    return sink.getvalue()


def _arrow_type(pa: Any, column: Column) -> Any:
    if column.unit in {TIME, DAY}:
        return pa.timestamp("us", tz="UTC")
    if column.unit == "count":
        return pa.int64()
    return pa.float64() if column.unit else pa.string()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    return str(value) if isinstance(value, str) else value


# Suffix: media type and encoder.
FILES: Mapping[str, tuple[str, Callable[[ChartTable], bytes]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json),
    "parquet": ("application/vnd.apache.parquet", as_parquet),
}
