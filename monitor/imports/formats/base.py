"""What an importer is: it turns a stream of bytes into measured runs, one after the other.

An importer is a class named ``Importer`` in a file of its own in this folder. It is pure: it reads what it is
given and knows neither the depot nor the clock. It streams: it reads no farther than it has to, and keeps
nothing of what it has handed out. What cannot be read is handed out as well, so that all else is.

Errors::

    ImporterError
    |-- UnknownImporter   there is no such kind                                          for good
    |-- InvalidOption     an option that makes no sense                                  for good
    '-- Unreadable        nothing (more) of this can be read: another kind, or cut off   for good
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
    """Root of what goes wrong with what others measured."""


class UnknownImporter(ImporterError, LookupError):
    pass


class InvalidOption(ImporterError):
    """*option* is the one at fault."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(f"--{option.replace('_', '-')}: {message}")
        self.message, self.option = message, option


class Unreadable(ImporterError):
    pass


@dataclass(frozen=True)
class Option:
    """One option of an importer, a text; *metavar* is how help calls it."""

    description: str
    default: str = ""
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()

    def check(self, name: str, value: str) -> None:
        """Raise InvalidOption for a *value* that is none of the choices, nor the default."""
        if self.choices and value not in (*self.choices, self.default):
            raise InvalidOption(f"expected one of {', '.join(self.choices)}, got {value!r}", name)


@dataclass(frozen=True)
class Example:
    """The least that is worth importing, for help and for the contract suite: *data*, and the options for
    it."""

    data: bytes
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """One run, as somebody else measured it.

    *series* is what comes behind the name that the user gives, empty where there is one series only. Its
    *slot* is its time, and its identity within its series. It began then, took *seconds*, and what it
    measured became known at the end of them. *parameters* say what was measured: of other parameters is
    another segment. A run with *stages* has totals. *resource* and *site* are names, empty where the data do
    not say them.
    """

    where: str  # as in "line 17": where it was read
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


@dataclass(frozen=True)
class Malformed:
    """Something that could not be read, though what comes behind it can."""

    where: str
    field: str
    expected: str
    got: str

    def __str__(self) -> str:
        got = repr(self.got)
        shown = got if len(got) <= _SHOWN_CHARACTERS else f"{got[:_SHOWN_CHARACTERS]}..."
        return f"{self.where}: {self.field}: expected {self.expected}, got {shown}"


@dataclass(frozen=True)
class LeftOut:
    """Something that is as it should be, but no run."""

    where: str
    why: str


Item = Measured | Malformed | LeftOut


class Importer(Protocol):
    """Reads one kind of data. *options* are its options by name, as Python has names (``time_column``)."""

    summary: ClassVar[str]  # one line: what is read, and what becomes of it
    measures: ClassVar[str]  # "application", or "grid" where it is what probes measure
    options: ClassVar[Mapping[str, Option]]
    example: ClassVar[Example]

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raise InvalidOption where one makes no sense. All are there; choices have been checked."""

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        """What is in *stream*, in its order.

        Raises:
            Unreadable: nothing more of it can be read; what came before has been handed out.
        """


class Misfit(ValueError):
    """A field is not as *expected*; becomes ``Malformed`` where it is known where it was."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        super().__init__(field, expected, got)
        self.field, self.expected, self.got = field, expected, str(got)

    def at(self, where: str) -> Malformed:
        return Malformed(where, self.field, self.expected, self.got)


def stage(name: str, category: str, seconds: float) -> StageTiming:
    """The one stage of a run, from its beginning."""
    return StageTiming(name, category, seconds, 0.0)


def time_at(field: str, seconds: float) -> datetime:
    """The time *seconds* after 1970 began (UTC). Raises Misfit for one that no depot holds."""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise Misfit(field, "seconds since 1970", seconds) from None
    if not 1970 <= time.year <= 2200:
        raise Misfit(field, "a time from 1970 to 2200, in seconds since 1970", f"{seconds:.15g}")
    return time
