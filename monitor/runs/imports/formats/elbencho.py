"""elbencho: the file of ``--jsonfile``, one JSON object a line (github.com/breuner/elbencho, Statistics.cpp).

Each phase, such as WRITE or RMFILES, is a run of the series ``write`` or ``rmfiles``, with the label before
it if there is one. All values are texts. The rates are those of *last done*, until the slowest thread had
finished; *first done* has its own metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from monitor.runs.imports.formats import results, text
from monitor.runs.imports.formats.base import Example, ImportedRun, InvalidField, Item, Option, stage
from probes.base import Measurement

_CONFIG = {
    "path_type": "path_type",
    "hosts": "hosts",
    "threads": "threads",
    "dirs": "directories",
    "files": "files",
    "file_size": "file_bytes",
    "block_size": "block_bytes",
    "direct_io": "direct",
    "random_offsets": "random",
    "io_depth": "queue_depth",
}
# key of elbencho -> name and unit of the metric
_RATES = {
    "bytes/s": ("bytes_per_second", "bytes_per_second"),
    "iops": ("operations_per_second", "operations_per_second"),
    "entries/s": ("entries_per_second", "operations_per_second"),
}
_MICROSECONDS = 1e-6


class Importer:
    summary = "elbencho JSON file: one series per label and phase, such as write, read, mkdirs."
    measures = "grid"
    options: Mapping[str, Option] = results.RESOURCE
    example = Example(
        b'{"phase_type":"WRITE","phase_id":"5c1e","iso_start_date":"2026-11-26T15:00:00.250+0100",'
        b'"config":{"path_type":"file","hosts":"1","threads":"4","block_size":"1048576","direct_io":"true"},'
        b'"first_done":{"elapsed_time_ms":"980","iops":"255","bytes\\/s":"267386880","cpu%":"4"},'
        b'"last_done":{"elapsed_time_ms":"1010","iops":"253","bytes\\/s":"265289728","cpu%":"4",'
        b'"latency":{"IO":{"min_us":"1500","avg_us":"15700","max_us":"30100"}}}}\n'
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.resource = options["resource"]

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        for place, line in enumerate(text.lines(stream), start=1):
            where = f"line {place}"
            try:
                if line.strip():
                    yield self._run(where, _object(line))
            except InvalidField as error:
                yield error.at(where)

    def _run(self, where: str, phase: dict[str, Any]) -> ImportedRun:
        name = phase.get("phase_type")
        if not isinstance(name, str) or not name:
            raise InvalidField("phase_type", "the name of a phase", name)
        last, first = _part(phase, "last_done"), _part(phase, "first_done")
        seconds = text.seconds("elapsed_time_ms", str(last.get("elapsed_time_ms")), 1e-3)
        operation, label = text.slug(name.lower()), phase.get("label")
        return ImportedRun(
            where,
            text.time("iso_start_date", str(phase.get("iso_start_date"))),
            seconds,
            [
                *_rates(operation, last),
                *_rates(f"{operation}.first_done", first),
                *_latencies(operation, last.get("latency")),
            ],
            (stage("compute", "compute", seconds),),
            text.slug(label, operation) if isinstance(label, str) and label else operation,
            results.scalars(_part(phase, "config"), _CONFIG),
            resource=self.resource,
        )


def _object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidField("line", "a JSON object, as written by elbencho --jsonfile", text.printable(line))
    return value


def _part(phase: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = phase.get(key, {})
    if not isinstance(value, dict):
        raise InvalidField(key, "an object", value)
    return value


def _rates(prefix: str, part: Mapping[str, Any]) -> list[Measurement]:
    return results.measurements(
        (f"{prefix}.{name}", text.number(key, str(part[key])), 1.0, unit)
        for key, (name, unit) in _RATES.items()
        if key in part
    )


def _latencies(prefix: str, latency: Any) -> list[Measurement]:
    if not isinstance(latency, dict):
        return []
    return results.measurements(
        (
            f"{prefix}.{name}.seconds",
            text.number(f"latency.{key}", str(latency[key]["avg_us"])),
            _MICROSECONDS,
            "seconds",
        )
        for key, name in (("IO", "latency"), ("entries", "entry_latency"))
        if isinstance(latency.get(key), dict) and "avg_us" in latency[key]
    )
