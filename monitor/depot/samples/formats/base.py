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
    """One exported row: one value of one run. Times are UTC.

    *name* is the metric, and *value* is in *unit*. *time* is the slot: the time for which the run was
    scheduled. *known_at* is the end of the run. *segment* is the number of the run's segment, or None if the
    run measured nothing; all runs of a segment have the same probe version, parameters and resources.

    Each run that did not pass has an additional row, whose metric is ``total.seconds`` and whose *value* and
    *known_at* are None. So every ended run has a row, even if it measured nothing.
    """

    name: str
    time: datetime
    known_at: datetime | None
    value: float | None
    unit: str
    outcome: str
    segment: int | None


class Export(Protocol):
    """An encoder of the values of the series named *series*. The columns are the fields of ``Value``."""

    media_type: ClassVar[str]
    suffix: ClassVar[str]  # of files

    def __init__(self, series: str) -> None: ...

    def chunks(self, values: Iterable[Value]) -> Iterator[bytes]:
        """Yield the bytes of one file with all *values* in order; read *values* only as needed."""


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of *size* items; the last list may be shorter, but is not empty."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
