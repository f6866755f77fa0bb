"""Plain CSV: a run a line, its columns named by options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import BinaryIO
from zoneinfo import ZoneInfo

from monitor.imports.formats import table, text
from monitor.imports.formats.base import (
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
from probes.base import Measurement
from probes.common.external_metrics import safe_name
from probes.common.units import si_unit
from reporters.report import OUTCOMES


class Importer:
    summary = "Plain CSV: a run a line; options name its columns (without a header: their numbers from 1 on)."
    measures = "grid"
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
        "seconds_unit": Option("of how long they took: s, min, h, ms, ...", "s", "UNIT"),
        "end_column": Option(
            "when each run ended, written as when it began: where no column says how long it took",
            metavar="COLUMN",
        ),
        "series_column": Option("a series for each text in it, or in them together", metavar="COLUMN,..."),
        "outcome_column": Option(f"how each ended, one of {', '.join(OUTCOMES)}", metavar="COLUMN"),
        "outcome": Option("how all ended, where no column says it", "passed", "OUTCOME", OUTCOMES),
        "reason_columns": Option(
            "why they ended so: of several the texts that there are, with the names of their columns",
            metavar="COLUMN,...",
        ),
        "apart": Option(
            "whether runs of a series of the same whole second are different ones: the microseconds of each"
            " are the last six digits of its line's number",
            "no",
            "yes|no",
            ("yes", "no"),
        ),
        "delimiter": Option("between fields; 'tab' is a tab", ",", "CHARACTER"),
        "header": Option("whether the first line names the columns", "yes", "yes|no", ("yes", "no")),
    }
    example = Example(
        b"time,host,rate,latency\n2026-03-01T12:00:00Z,a,94.3,3.1\n2026-03-01T12:05:00Z,b,90.1,\n",
        {"value_columns": "rate,latency", "units": "MB/s,ms", "series_column": "host"},
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options_given = options
        if not options["time_column"]:
            raise InvalidOption("expected a column", "time_column")
        columns = _listed(options["value_columns"])
        units = [unit.strip() for unit in options["units"].split(",")]
        if len(units) == 1:
            units *= len(columns)
        if len(units) != len(columns):
            raise InvalidOption(f"expected one or {len(columns)} of them, got {len(units)}", "units")
        self.values = [
            (column, safe_name(column), *si_unit(unit)) for column, unit in zip(columns, units, strict=True)
        ]
        if options["end_column"] and options["seconds_column"]:
            raise InvalidOption("expected none, where there is a --seconds-column", "end_column")
        self.is_timed = bool(options["end_column"] or options["seconds_column"])
        if not columns and not self.is_timed:
            raise InvalidOption(
                "expected some, where there is no --seconds-column, nor an --end-column", "value_columns"
            )
        self.second, unit = si_unit(options["seconds_unit"])
        if unit != "seconds":
            raise InvalidOption(f"expected a unit of time, got {options['seconds_unit']!r}", "seconds_unit")
        self.labels, self.reasons = _listed(options["series_column"]), _listed(options["reason_columns"])
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
        single = ("time_column", "seconds_column", "end_column", "outcome_column")
        others = [self.options_given[option] for option in single if self.options_given[option]]
        return [*others, *self.labels, *self.reasons, *(column for column, _, _, _ in self.values)]

    def _run(self, where: str, row: table.Row) -> Measured:
        slot = self._time(self.options_given["time_column"], row)
        seconds = self._seconds(slot, row) if self.is_timed else None
        if self.options_given["apart"] == "yes" and not slot.microsecond:
            slot = slot.replace(microsecond=int(where.rpartition(" ")[2]) % 1_000_000)
        labels = self._labels(row)
        return Measured(
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

    def _time(self, column: str, row: table.Row) -> datetime:
        return text.time(column, row[column].strip(), self.zone, self.options_given["time_format"])

    def _seconds(self, slot: datetime, row: table.Row) -> float | None:
        """How long it took, by the clock and not by what it showed; None where the field is empty."""
        given = self.options_given
        column = given["seconds_column"] or given["end_column"]
        said = row[column].strip()
        if not said:
            return None
        if given["seconds_column"]:
            return text.seconds(column, said, self.second)
        seconds = (self._time(column, row) - slot).total_seconds()
        if seconds < 0:
            raise Misfit(column, "an end that is not before the beginning", said)
        return text.seconds(column, str(seconds))

    def _labels(self, row: table.Row) -> dict[str, str]:
        """What says of which series it is, by column; of several, some may be empty."""
        labels = {column: row[column].strip() for column in self.labels}
        if labels and not any(labels.values()):
            raise Misfit(self.options_given["series_column"], "the name of a series", "")
        return labels

    def _reason(self, row: table.Row) -> str:
        said = {column: row[column].strip() for column in self.reasons}
        if len(said) == 1:
            return next(iter(said.values()))
        return "; ".join(f"{column}: {why}" for column, why in said.items() if why)

    def _metrics(self, row: table.Row) -> list[Measurement]:
        """An empty field was not measured."""
        said = [
            (column, name, factor, unit, row[column].strip()) for column, name, factor, unit in self.values
        ]
        return [
            Measurement(name, text.number(column, value, factor), unit)
            for column, name, factor, unit, value in said
            if value
        ]

    def _outcome(self, row: table.Row) -> str:
        column = self.options_given["outcome_column"]
        outcome = row[column].strip() if column else self.options_given["outcome"]
        if outcome not in OUTCOMES:
            raise Misfit(column, f"one of {', '.join(OUTCOMES)}", outcome)
        return outcome


def _listed(columns: str) -> list[str]:
    return [name.strip() for name in columns.split(",")] if columns.strip() else []
