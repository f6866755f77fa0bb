"""Declare the contract of export formats: they encode values chunk by chunk with bounded memory.

Errors::

    UnknownFormat     there is no such format     permanent
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
    """One value of one run: the metric, the slot, the end of the run, the number in *unit*, the outcome of
    the run, and the number of its segment. Times are UTC.

    A run that did not pass has an additional row for its total without a value, so that no run is missing. A
    run that measured nothing belongs to no segment.
    """

    name: str
    time: datetime
    known_at: datetime | None
    value: float | None
    unit: str
    outcome: str
    segment: int | None


class Export(Protocol):
    """Encodes the values of *series* (its name). The columns are those of ``Value``."""

    media_type: ClassVar[str]
    suffix: ClassVar[str]  # of files

    def __init__(self, series: str) -> None: ...

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        """Yield the bytes of one file with all *values* in order, read as they are needed."""


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of *size* items; the last may be shorter, none is empty."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
