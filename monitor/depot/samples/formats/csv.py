"""CSV: a head, then a row for each value. Numbers are written so that they read back as the same."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import datetime

from monitor.depot.samples.formats.base import Value, in_batches

ROWS = 1000  # at a time


class Export:
    media_type = "text/csv; charset=utf-8"
    suffix = "csv"

    def __init__(self, series: str) -> None:
        self.series = series

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        yield _written([Value.__struct_fields__])
        for batch in in_batches(values, ROWS):
            yield _written(map(_row, batch))


def _written(rows: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _row(one: Value) -> tuple[object, ...]:
    return one.name, _time(one.time), _time(one.known_at), one.value, one.unit, one.outcome, one.segment


def _time(time: datetime | None) -> str:
    """As ``reporters.report.rfc3339``, which turns any zone into UTC first, and takes its time for it."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z") if time else ""
