"""mdtest: its text output, with rates of metadata operations (github.com/hpc/ior, src/mdtest.c).

A table of rates is a run: the mean over its iterations, as mdtest prints no others; a file may have the
output of many calls. The series is ``tasks-N``, by the number of tasks. Times have no zone. A line in the
file may be cut by the output of other programs: it is reported, and the other lines are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from monitor.runs.imports.formats import results, text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    Item,
    MalformedRecord,
    Option,
    Unreadable,
    stage,
)
from probes.base import Measurement, Value

_TIME = "%m/%d/%Y %H:%M:%S"
_STARTED = re.compile(r"-- started at (.*) --\s*$")
_FINISHED = re.compile(r"-- finished at (.*) --\s*$")
_LAUNCHED = re.compile(r"launched with (\d{1,9}) total task\(s\) on (\d{1,9}) node\(s\)")
_ITEMS = re.compile(r"(\d{1,9}) tasks?, (\d{1,15}) (files/directories|files|directories|file)\b")
_SUMMARY = re.compile(r"SUMMARY (rate|time)\b.*?(?:of (\d{1,9}) iterations)?\)?$")
_OPERATION = re.compile(r"\s+((?:Directory|File|Tree) (?:creation|stat|read|removal|rename))\s*:?\s+(\S.*)$")
_COLUMNS = 4  # maximum, minimum, mean and standard deviation over iterations; with -P three before them


@dataclass
class _MdtestOutput:
    """The output of one call, as far as it was read."""

    where: str
    slot: datetime
    parameters: dict[str, Value] = field(default_factory=dict)
    metrics: dict[str, Measurement] = field(default_factory=dict)
    is_rates: bool = False


class Importer:
    summary = "mdtest text output: rates of metadata operations; one series per number of tasks."
    measures = "grid"
    options: Mapping[str, Option] = results.LOCAL_TIMES
    example = Example(
        b"-- started at 11/26/2026 15:00:00 --\n\n"
        b"mdtest-4.1.0+dev was launched with 2 total task(s) on 1 node(s)\n"
        b"Command line used: mdtest '-n' '100' '-i' '3' '-d' '/scratch/md'\n"
        b"FS: 1.8 TiB   Used FS: 35.6%   Inodes: 0.0 Mi   Used Inodes: -nan%\n"
        b"2 tasks, 200 files/directories\n\n"
        b"SUMMARY rate (in ops/sec): (of 3 iterations)\n"
        b"   Operation                      Max            Min           Mean        Std Dev\n"
        b"   ---------                      ---            ---           ----        -------\n"
        b"   Directory creation          14303.594      12884.122      13602.511        710.229\n"
        b"   File stat                  402115.903     388201.449     396004.310       7100.998\n"
        b"   Tree removal                  810.450        790.112        801.218         10.300\n"
        b"-- finished at 11/26/2026 15:00:01 --\n"
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.resource, self.zone = options["resource"], results.zone(options)

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        output: _MdtestOutput | None = None
        has_begun = False
        for place, line in enumerate(text.lines(stream), start=1):
            where = f"line {place}"
            try:
                if match := _STARTED.search(line):
                    if output is not None:
                        yield MalformedRecord(output.where, "output", "a line with its end", "another start")
                    output, has_begun = None, True
                    output = _MdtestOutput(where, text.time("started", match[1], self.zone, _TIME))
                elif output is None:
                    continue
                elif match := _FINISHED.search(line):
                    ended, output = output, None
                    yield self._run(ended, text.time("finished", match[1], self.zone, _TIME))
                else:
                    _read_line(output, line.rstrip())
            except InvalidField as error:
                yield error.at(where)
        if output is not None:
            yield MalformedRecord(output.where, "output", "a line with its end", "the end of the file")
        if not has_begun:
            raise Unreadable('expected the output of mdtest, with a line "-- started at ... --"')

    def _run(self, output: _MdtestOutput, finished: datetime) -> ImportedRun:
        seconds = (finished - output.slot).total_seconds()
        if seconds < 0:
            raise InvalidField("finished", f"a time after the start, {output.slot}", finished)
        if not output.metrics:
            raise InvalidField("output", "a table SUMMARY rate", "none")
        return ImportedRun(
            output.where,
            output.slot,
            seconds,
            list(output.metrics.values()),
            (stage("compute", "compute", seconds),),
            f"tasks-{output.parameters['tasks']}" if "tasks" in output.parameters else "",
            output.parameters,
            resource=self.resource,
        )


def _read_line(output: _MdtestOutput, line: str) -> None:
    if match := _LAUNCHED.search(line):
        output.parameters.update(tasks=int(match[1]), nodes=int(match[2]))
    elif match := _ITEMS.match(line):
        output.parameters["items"] = int(match[2])
    elif match := _SUMMARY.search(line):
        output.is_rates = match[1] == "rate"
        if match[2]:
            output.parameters["iterations"] = int(match[2])
    elif output.is_rates and (match := _OPERATION.match(line)):
        columns = match[2].split()
        if len(columns) not in (_COLUMNS, _COLUMNS + 3):
            raise InvalidField("line", f"an operation and {_COLUMNS} numbers", line.strip())
        name = match[1].lower().replace(" ", "_")
        mean = text.number(match[1], columns[-2])
        for metric in results.measurements(
            [(f"{name}.operations_per_second", mean, 1.0, "operations_per_second")]
        ):
            output.metrics[metric.name] = metric
