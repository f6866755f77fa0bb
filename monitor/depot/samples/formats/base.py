"""What a form of export does: it turns values into bytes, some at a time, and never holds them all.

Errors::

    UnknownFormat     there is no such form     for good
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import ClassVar, Protocol, TypeVar

import msgspec

Item = TypeVar("Item")


class UnknownFormat(Exception):
    pass


class Value(msgspec.Struct, frozen=True, gc=False):
    """One value of one run: what is measured, the run's slot, when its report had ended, the number in
    *unit*, how the run ended, and the number of its segment. Times have a zone: UTC.

    A run that did not pass has one more, of its total, without a number, so that no run is missing. One that
    measured nothing is of no segment.
    """

    name: str
    time: datetime
    known_at: datetime | None
    value: float | None
    unit: str
    outcome: str
    segment: int | None


class Export(Protocol):
    """The values of *series*, its name, in one form. Its columns are those of ``Value``."""

    media_type: ClassVar[str]
    suffix: ClassVar[str]  # of files

    def __init__(self, series: str) -> None: ...

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        """All of *values*, in their order, taken as they are needed; together one whole file."""


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of *size*; the last may be shorter, none is empty."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
