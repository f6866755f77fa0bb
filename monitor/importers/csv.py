"""Plain CSV: a run a line, its columns named by options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO
from zoneinfo import ZoneInfo

from monitor.importers import table, text
from monitor.importers.base import (
    Example,
    InvalidOption,
    Item,
    LeftOut,
    Malformed,
    Measured,
    Misfit,
    Option,
    stage,
)
from probes.base import Metric, Value
from probes.foreign import safe_name, si_unit
from reporters.report import OUTCOMES


class Importer:
    summary = "Plain CSV: a run a line; options name its columns (without a header: their numbers from 1 on)."
    options = {
        "time_column": Option("when each run began", "time", "COLUMN"),
        "time_format": Option(
            "of times, as in strptime (default: seconds since 1970, or ISO 8601)", metavar="FORMAT"
        ),
        "timezone": Option("of times that do not say theirs, by IANA name", "UTC", "ZONE"),
        "value_columns": Option(
            "what was measured: each is a metric of its name; empty where it is durations alone",
            "value",
            "COLUMN,...",
        ),
        "units": Option("of the values: one for all, or one for each", metavar="UNIT,..."),
        "seconds_column": Option(
            "how long each run took: its total, and its values are known at its end", metavar="COLUMN"
        ),
        "series_column": Option("a series for each text in it", metavar="COLUMN"),
        "outcome_column": Option(f"how each ended, one of {', '.join(OUTCOMES)}", metavar="COLUMN"),
        "delimiter": Option("between fields; 'tab' is a tab", ",", "CHARACTER"),
        "header": Option("whether the first line names the columns", "yes", "yes|no", ("yes", "no")),
    }
    example = Example(
        b"time,host,rate,latency\n2026-03-01T12:00:00Z,a,94.3,3.1\n2026-03-01T12:05:00Z,b,90.1,\n",
        {"value_columns": "rate,latency", "units": "MB/s,ms", "series_column": "host"},
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options_given = options
        said = options["value_columns"].strip()
        columns = [name.strip() for name in said.split(",")] if said else []
        units = [unit.strip() for unit in options["units"].split(",")]
        if len(units) == 1:
            units *= len(columns)
        if len(units) != len(columns):
            raise InvalidOption(f"expected one or {len(columns)} of them, got {len(units)}", "units")
        self.values = [
            (column, safe_name(column), *si_unit(unit)) for column, unit in zip(columns, units, strict=True)
        ]
        if not columns and not options["seconds_column"]:
            raise InvalidOption("expected some, where there is no --seconds-column", "value_columns")
        if len({name for _, name, _, _ in self.values}) != len(self.values):
            raise InvalidOption("expected columns with different names", "value_columns")
        self.delimiter = {"tab": "\t"}.get(options["delimiter"], options["delimiter"])
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise InvalidOption(
                f"expected one character, or 'tab', got {options['delimiter']!r}", "delimiter"
            )
        try:
            self.zone = ZoneInfo(options["timezone"])
        except (OSError, ValueError, KeyError):
            raise InvalidOption(
                f"expected a zone such as UTC, got {options['timezone']!r}", "timezone"
            ) from None

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        for found in table.rows(
            stream, self._columns(), delimiter=self.delimiter, header=self.options_given["header"] == "yes"
        ):
            if isinstance(found, Malformed):
                yield found
                continue
            where, row = found
            try:
                run = self._run(where, row)
                yield run if run.metrics or run.stages else LeftOut(where, "nothing was measured")
            except Misfit as misfit:
                yield misfit.at(where)

    def _columns(self) -> list[str]:
        others = [name for option, name in self.options_given.items() if option.endswith("_column") and name]
        return [*others, *(column for column, _, _, _ in self.values)]

    def _run(self, where: str, row: table.Row) -> Measured:
        given = self.options_given
        column = given["time_column"]
        slot = text.time(column, row[column].strip(), self.zone, given["time_format"])
        seconds = self._seconds(row)
        label = row[given["series_column"]].strip() if given["series_column"] else ""
        if given["series_column"] and not label:
            raise Misfit(given["series_column"], "the name of a series", label)
        parameters: dict[str, Value] = {given["series_column"]: label} if label else {}
        return Measured(
            where,
            slot,
            seconds or 0.0,
            self._metrics(row),
            () if seconds is None else (stage("compute", "compute", seconds),),
            text.slug(label) if label else "",
            parameters,
            self._outcome(row),
        )

    def _seconds(self, row: table.Row) -> float | None:
        column = self.options_given["seconds_column"]
        said = row[column].strip() if column else ""
        return text.seconds(column, said) if said else None

    def _metrics(self, row: table.Row) -> list[Metric]:
        """An empty field was not measured."""
        said = [
            (column, name, factor, unit, row[column].strip()) for column, name, factor, unit in self.values
        ]
        return [
            Metric(name, text.number(column, value, factor), unit)
            for column, name, factor, unit, value in said
            if value
        ]

    def _outcome(self, row: table.Row) -> str:
        column = self.options_given["outcome_column"]
        outcome = row[column].strip() if column else "passed"
        if outcome not in OUTCOMES:
            raise Misfit(column, f"one of {', '.join(OUTCOMES)}", outcome)
        return outcome
