"""NDJSON: a JSON object per value and line, with null for absent fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from monitor.depot.samples.formats.base import Value, in_batches

ROWS = 1000  # per chunk


class Export:
    media_type = "application/x-ndjson"
    suffix = "ndjson"

    def __init__(self, series: str) -> None:
        self.series = series

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        encode = msgspec.json.Encoder().encode_lines
        for batch in in_batches(values, ROWS):
            yield encode(batch)
