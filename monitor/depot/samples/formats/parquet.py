"""Parquet: typed columns, a row group per chunk; the schema describes the columns."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from monitor.depot.samples.formats.base import Value, in_batches

ROWS = 20_000  # per row group

_TIME = pa.timestamp("us", tz="UTC")
_FIELDS: dict[str, tuple[Any, str]] = {
    "name": (pa.string(), "the metric"),
    "time": (_TIME, "slot of the run"),
    "known_at": (_TIME, "when the report of the run had ended"),
    "value": (pa.float64(), "in the unit that the column unit says"),
    "unit": (pa.string(), "of the value"),
    "outcome": (pa.string(), "how the run ended"),
    "segment": (pa.int32(), "number of the segment of the series"),
}


class Export:
    media_type = "application/vnd.apache.parquet"
    suffix = "parquet"

    def __init__(self, series: str) -> None:
        fields = [pa.field(name, kind, metadata={"is": text}) for name, (kind, text) in _FIELDS.items()]
        self.schema = pa.schema(fields, metadata={"series": series})

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        sink = _Sink()
        with parquet.ParquetWriter(sink, self.schema, compression="zstd") as writer:
            for batch in in_batches(values, ROWS):
                writer.write_batch(self._columns(batch))
                yield sink.take()
        yield sink.take()  # the footer lists the row groups

    def _columns(self, batch: list[Value]) -> Any:
        columns = [[getattr(value, name) for value in batch] for name in _FIELDS]
        return pa.record_batch(columns, schema=self.schema)


class _Sink(io.RawIOBase):
    """A file that buffers written bytes until ``take``."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        whole = b"".join(self._parts)
        self._parts.clear()
        return whole
