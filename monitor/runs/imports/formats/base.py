"""The protocol of importers: an importer turns a stream of bytes into runs, one after the other.

An importer is a class named ``Importer`` in a file of its own in this folder. It is pure: it uses neither the
depot nor the clock. It streams: it reads no further than the next item and keeps no item that it has yielded.
A malformed record is yielded as an item too, and the importer continues behind the record.

Errors::

    ImporterError
    |-- UnknownImporter   there is no importer of this kind                     permanent
    |-- InvalidOption     an option is unknown, or its value is invalid         permanent
    '-- Unreadable        the rest of the stream cannot be read: another kind
                          of data, or truncated                                 permanent
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, ClassVar, Protocol

from probes.base import Measurement, Value
from reporters.report import StageTiming

_SHOWN_CHARACTERS = 80


class ImporterError(Exception):
    """Root of the errors of importers."""


class UnknownImporter(ImporterError, LookupError):
    pass


class InvalidOption(ImporterError):
    """The value or the name of *option* is invalid."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(f"--{option.replace('_', '-')}: {message}")
        self.message, self.option = message, option


class Unreadable(ImporterError):
    pass


@dataclass(frozen=True)
class Option:
    """One option of an importer. Its value is a string; *metavar* stands for the value in the help."""

    description: str
    default: str = ""
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()

    def check(self, name: str, value: str) -> None:
        """Raise InvalidOption if *value* is neither one of the choices, if there are any, nor the default.

        *name* is the name of the option, for the message.
        """
        if self.choices and value not in (*self.choices, self.default):
            raise InvalidOption(f"expected one of {', '.join(self.choices)}, got {value!r}", name)


@dataclass(frozen=True)
class Example:
    """A minimal file and the options to import it with, for the help and the contract suite."""

    data: bytes
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedRun:
    """One run, as another system measured it.

    Attributes:
        slot: the start of the run; it identifies the run within its series.
        seconds: the duration of the run; its values became known at its end.
        stages: the stages of the run; a run with stages has totals.
        series: a suffix of the series name that the user gives; empty if the file contains a single series.
        parameters: describe what was measured; when they change, a new segment begins.
        resource, site: names; empty if the data do not name a resource or a site.
        is_resource_at_fault: whether a failure counts against the measured resource.
    """

    where: str  # the place in the file, such as "line 17"
    slot: datetime
    seconds: float
    metrics: Sequence[Measurement]
    stages: Sequence[StageTiming] = ()
    series: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    outcome: str = "passed"
    reason: str = ""
    resource: str = ""
    site: str = ""
    is_resource_at_fault: bool = True


@dataclass(frozen=True)
class MalformedRecord:
    """A record that could not be read; the import continues behind it."""

    where: str
    field: str
    expected: str
    got: str

    def __str__(self) -> str:
        got = repr(self.got)
        shown = got if len(got) <= _SHOWN_CHARACTERS else f"{got[:_SHOWN_CHARACTERS]}..."
        return f"{self.where}: {self.field}: expected {self.expected}, got {shown}"


@dataclass(frozen=True)
class SkippedRecord:
    """A valid record that is no run."""

    where: str
    reason: str


Item = ImportedRun | MalformedRecord | SkippedRecord


class Importer(Protocol):
    """Reads one kind of data. The names of its options are Python identifiers, such as ``time_column``."""

    summary: ClassVar[str]  # one line: the format, and which series it becomes
    measures: ClassVar[str]  # the ``kind`` of new series: "application" or "grid"
    options: ClassVar[Mapping[str, Option]]
    example: ClassVar[Example]

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raise InvalidOption for an invalid value.

        *options* has a value for every option; values of options with choices have been checked.
        """

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        """Yield the items of *stream* in the order of the file.

        Raises:
            Unreadable: the rest of the stream cannot be read; the items before the error have been yielded.
        """


class InvalidField(ValueError):
    """The value of a field is not as *expected*; ``at`` converts the error to a ``MalformedRecord``."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        super().__init__(field, expected, got)
        self.field, self.expected, self.got = field, expected, str(got)

    def at(self, where: str) -> MalformedRecord:
        return MalformedRecord(where, self.field, self.expected, self.got)


def stage(name: str, category: str, seconds: float) -> StageTiming:
    """Return a stage that begins at the start of its run."""
    return StageTiming(name, category, seconds, 0.0)


def time_at(field: str, seconds: float) -> datetime:
    """Return the time *seconds* after 1970-01-01 UTC; *field* is the name of the field, for the error.

    Raises:
        InvalidField: the year is not between 1970 and 2200.
    """
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise InvalidField(field, "seconds since 1970", seconds) from None
    if not 1970 <= time.year <= 2200:
        raise InvalidField(field, "a time from 1970 to 2200, in seconds since 1970", f"{seconds:.15g}")
    return time
