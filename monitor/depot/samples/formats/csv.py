"""CSV: a header, then a row per value. Numbers are written with all digits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache

from monitor.core.csvfile import to_csv
from monitor.depot.samples.formats.base import Value, in_batches

ROWS = 1000  # per chunk


class Export:
    media_type = "text/csv; charset=utf-8"
    suffix = "csv"

    def __init__(self, series: str) -> None:
        self.series = series

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        yield to_csv([Value.__struct_fields__]).encode()
        for batch in in_batches(values, ROWS):
            yield to_csv(map(_row, batch)).encode()


def _row(value: Value) -> tuple[object, ...]:
    times = _time(value.time), _time(value.known_at)
    return value.name, *times, value.value, value.unit, value.outcome, value.segment


@lru_cache(maxsize=64)  # the values of a run share its times
def _time(time: datetime | None) -> str:
    """Format a UTC time like ``reporters.report.rfc3339``, which is slower as it converts any zone."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z") if time else ""
