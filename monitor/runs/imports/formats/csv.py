"""Plain CSV: one run per line; options name the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import BinaryIO

from monitor.runs.imports.formats import results, table, text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    InvalidOption,
    Item,
    MalformedRecord,
    Option,
    SkippedRecord,
    stage,
)
from probes.base import Measurement
from probes.common.external_metrics import safe_name
from probes.common.units import si_unit
from reporters.report import OUTCOMES


class Importer:
    summary = "Plain CSV: one run per line; options name the columns (without a header: by number, from 1)."
    measures = "grid"
    options = {
        "time_column": Option("start of each run", "time", "COLUMN"),
        "time_format": Option(
            "format of times, as in strptime (default: seconds since 1970, or ISO 8601)", metavar="FORMAT"
        ),
        "timezone": Option("IANA time zone of times without one", "UTC", "ZONE"),
        "value_columns": Option(
            "measured values: one metric per column, with its name; empty to import durations only",
            "value",
            "COLUMN,...",
        ),
        "units": Option("unit of the values: one for all columns, or one per column", metavar="UNIT,..."),
        "seconds_column": Option(
            "duration of each run: its total; its values become known at its end", metavar="COLUMN"
        ),
        "seconds_unit": Option("unit of the durations: s, min, h, ms, ...", "s", "UNIT"),
        "end_column": Option(
            "end of each run, in the format of its start; used if no column has the duration",
            metavar="COLUMN",
        ),
        "series_column": Option("one series per value, or combination of values", metavar="COLUMN,..."),
        "outcome_column": Option(f"outcome of each run: {', '.join(OUTCOMES)}", metavar="COLUMN"),
        "outcome": Option("outcome of all runs, if no column has it", "passed", "OUTCOME", OUTCOMES),
        "reason_columns": Option(
            "reason of the outcome; with several columns, each text that is not empty and its column",
            metavar="COLUMN,...",
        ),
        "apart": Option(
            "keep runs of a series in the same second apart: the microseconds of their slots are the last six"
            " digits of the line number",
            "no",
            "yes|no",
            ("yes", "no"),
        ),
        "delimiter": Option("separator of fields; 'tab' is a tab", ",", "CHARACTER"),
        "header": Option("the first line names the columns", "yes", "yes|no", ("yes", "no")),
    }
    example = Example(
        b"time,host,rate,latency\n2026-03-01T12:00:00Z,a,94.3,3.1\n2026-03-01T12:05:00Z,b,90.1,\n",
        {"value_columns": "rate,latency", "units": "MB/s,ms", "series_column": "host"},
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options_given = options
        if not options["time_column"]:
            raise InvalidOption("expected a column", "time_column")
        columns = _split(options["value_columns"])
        units = [unit.strip() for unit in options["units"].split(",")]
        if len(units) == 1:
            units *= len(columns)
        if len(units) != len(columns):
            raise InvalidOption(f"expected 1 unit or {len(columns)} units, got {len(units)}", "units")
        self.values = [
            (column, safe_name(column), *si_unit(unit)) for column, unit in zip(columns, units, strict=True)
        ]
        if options["end_column"] and options["seconds_column"]:
            raise InvalidOption("cannot be combined with --seconds-column", "end_column")
        self.is_timed = bool(options["end_column"] or options["seconds_column"])
        if not columns and not self.is_timed:
            raise InvalidOption(
                "expected columns, as there is neither --seconds-column nor --end-column", "value_columns"
            )
        self.second, unit = si_unit(options["seconds_unit"])
        if unit != "seconds":
            raise InvalidOption(f"expected a unit of time, got {options['seconds_unit']!r}", "seconds_unit")
        self.labels, self.reasons = _split(options["series_column"]), _split(options["reason_columns"])
        if len({name for _, name, _, _ in self.values}) != len(self.values):
            raise InvalidOption("expected columns with different names", "value_columns")
        self.delimiter = {"tab": "\t"}.get(options["delimiter"], options["delimiter"])
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise InvalidOption(
                f"expected one character, or 'tab', got {options['delimiter']!r}", "delimiter"
            )
        self.zone = results.zone(options)

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        for line in table.rows(
            stream, self._columns(), delimiter=self.delimiter, header=self.options_given["header"] == "yes"
        ):
            if isinstance(line, MalformedRecord):
                yield line
                continue
            where, row = line
            try:
                run = self._run(where, row)
                yield run if run.metrics or run.stages else SkippedRecord(where, "nothing was measured")
            except InvalidField as error:
                yield error.at(where)

    def _columns(self) -> list[str]:
        single = ("time_column", "seconds_column", "end_column", "outcome_column")
        others = [self.options_given[option] for option in single if self.options_given[option]]
        return [*others, *self.labels, *self.reasons, *(column for column, _, _, _ in self.values)]

    def _run(self, where: str, row: table.CsvRow) -> ImportedRun:
        slot = self._time(self.options_given["time_column"], row)
        seconds = self._seconds(slot, row) if self.is_timed else None
        if self.options_given["apart"] == "yes" and not slot.microsecond:
            slot = slot.replace(microsecond=int(where.rpartition(" ")[2]) % 1_000_000)
        labels = self._labels(row)
        return ImportedRun(
            where,
            slot,
            seconds or 0.0,
            self._metrics(row),
            () if seconds is None else (stage("compute", "compute", seconds),),
            text.slug(*labels.values()) if labels else "",
            {**labels},
            self._outcome(row),
            self._reason(row),
        )

    def _time(self, column: str, row: table.CsvRow) -> datetime:
        return text.time(column, row[column].strip(), self.zone, self.options_given["time_format"])

    def _seconds(self, slot: datetime, row: table.CsvRow) -> float | None:
        """Return the elapsed time, independent of daylight saving; None if the field is empty."""
        given = self.options_given
        column = given["seconds_column"] or given["end_column"]
        value = row[column].strip()
        if not value:
            return None
        if given["seconds_column"]:
            return text.seconds(column, value, self.second)
        seconds = (self._time(column, row) - slot).total_seconds()
        if seconds < 0:
            raise InvalidField(column, "an end that is not before the start", value)
        return text.seconds(column, str(seconds))

    def _labels(self, row: table.CsvRow) -> dict[str, str]:
        """Return the texts that select the series, by column; some, but not all, of them may be empty."""
        labels = {column: row[column].strip() for column in self.labels}
        if labels and not any(labels.values()):
            raise InvalidField(self.options_given["series_column"], "the name of a series", "")
        return labels

    def _reason(self, row: table.CsvRow) -> str:
        reasons = {column: row[column].strip() for column in self.reasons}
        if len(reasons) == 1:
            return next(iter(reasons.values()))
        return "; ".join(f"{column}: {reason}" for column, reason in reasons.items() if reason)

    def _metrics(self, row: table.CsvRow) -> list[Measurement]:
        """Return the measured values; an empty field has no value."""
        return [
            Measurement(name, text.number(column, value, factor), unit)
            for column, name, factor, unit in self.values
            if (value := row[column].strip())
        ]

    def _outcome(self, row: table.CsvRow) -> str:
        column = self.options_given["outcome_column"]
        outcome = row[column].strip() if column else self.options_given["outcome"]
        if outcome not in OUTCOMES:
            raise InvalidField(column, f"one of {', '.join(OUTCOMES)}", outcome)
        return outcome


def _split(columns: str) -> list[str]:
    return [name.strip() for name in columns.split(",")] if columns.strip() else []
