"""Network Weather Service: the output of ``nws_extract``, with a time and a value on each line.

NWS (Wolski, Spring, Hayes: The Network Weather Service, FGCS 15, 1999) measured processors, memory, disks and
networks. Times are seconds since 1970; the unit follows from the resource (NWS User's Guide). The data have
no durations: a value counts as known at its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    Item,
    MalformedRecord,
    Option,
    SkippedRecord,
)
from probes.base import Measurement
from probes.common.external_metrics import safe_name
from probes.common.units import si_unit

# NWS resource -> name of our metric, NWS unit
RESOURCES = {
    "availableCpu": ("cpu.available", ""),
    "currentCpu": ("cpu.current", ""),
    "bandwidthTcp": ("bandwidth", "Mb/s"),
    "latencyTcp": ("latency", "ms"),
    "connectTimeTcp": ("connect_time", "ms"),
    "freeDisk": ("disk.free", "MB"),
    "freeMemory": ("memory.free", "MB"),
}
_FRACTIONS = ("availableCpu", "currentCpu")


class Importer:
    summary = "Network Weather Service: lines with a time (seconds since 1970) and a value; one series."
    measures = "grid"
    options = {
        "resource": Option(
            "NWS resource; it determines the unit and the name of the metric",
            metavar="NAME",
            choices=tuple(RESOURCES),
        ),
        "metric": Option("name of the metric, without --resource", "value", "NAME"),
        "unit": Option("unit of the values, without --resource: ms, Mb/s, ...", metavar="UNIT"),
    }
    example = Example(b"1141056000 94.31\n1141056120 93.77\n", {"resource": "bandwidthTcp"})

    def __init__(self, options: Mapping[str, str]) -> None:
        resource = options["resource"]
        name, unit = RESOURCES.get(resource, (options["metric"], options["unit"]))
        self.factor, unit = si_unit(unit)
        self.unit = "ratio" if resource in _FRACTIONS else unit
        self.name = safe_name(name)
        self.parameters = {"resource": resource} if resource else {}

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        for number, line in enumerate(text.lines(stream), start=1):
            words, where = line.split(), f"line {number}"
            if not words:
                continue
            if line.startswith("#"):
                yield SkippedRecord(where, "a comment")
            else:
                yield self._item(where, words)

    def _item(self, where: str, words: list[str]) -> ImportedRun | MalformedRecord:
        try:
            if len(words) != 2:
                raise InvalidField("line", "a time and a value", " ".join(words))
            slot = text.time("time", words[0])
            value = text.number("value", words[1], self.factor)
        except InvalidField as error:
            return error.at(where)
        return ImportedRun(
            where, slot, 0.0, (Measurement(self.name, value, self.unit),), parameters=self.parameters
        )
