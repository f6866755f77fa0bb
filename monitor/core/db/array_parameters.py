"""Arrays as parameters of statements that run often: packed fast, and planned once.

psycopg packs arrays item by item in Python, which took half of the processor time of ingest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.abc import PyFormat
from psycopg.adapt import Dumper

from monitor.core.db.timestamps import EPOCH, micros

if TYPE_CHECKING:
    from datetime import datetime


class _ItemType(NamedTuple):
    """A type of PostgreSQL: its oid, that of its arrays, and a code of ``struct``, if its size is fixed."""

    oid: int
    array_oid: int
    code: str = ""
    convert: Callable[[Any], Any] | None = None


def _postgres_micros(time: datetime) -> int:
    return micros(time) - EPOCH


_TYPES = {
    "bool": _ItemType(16, 1000, "?"),
    "int2": _ItemType(21, 1005, "h"),
    "int4": _ItemType(23, 1007, "i"),
    "int8": _ItemType(20, 1016, "q"),
    "float8": _ItemType(701, 1022, "d"),
    "timestamptz": _ItemType(1184, 1185, "q", _postgres_micros),
    "uuid": _ItemType(2950, 2951, "16s", lambda key: key.bytes),
    "text": _ItemType(25, 1009, convert=str.encode),
    "bytea": _ItemType(17, 1001),
}
_NULL = struct.pack("!i", -1)


class PackedArray(NamedTuple):
    """An array in PostgreSQL's binary format, and the oid of its type."""

    oid: int
    data: bytes


class Arrays:
    """Parameters of a statement that are arrays of these *types*: one column of a relation each."""

    def __init__(self, *types: str) -> None:
        self._types = [_TYPES[name] for name in types]
        # The subqueries hide the number of items from the planner. It expects more items of unknown arrays
        # than a group of reports has, so it would prefer a plan for the arrays of an execution and plan again
        # each time, which takes longer than to execute.
        self.placeholders = ", ".join(f"(SELECT %b::{name}[])" for name in types)

    def pack(self, columns: Iterable[Sequence[Any]]) -> list[PackedArray]:
        """Return *columns* as parameters for ``placeholders``; None is NULL.

        Raises:
            OverflowError: an item is too large for its type.
        """
        try:
            return [_packed(*pair) for pair in zip(self._types, columns, strict=True)]
        except struct.error as error:
            raise OverflowError(f"a number is out of range: {error}") from error


def _packed(kind: _ItemType, items: Sequence[Any]) -> PackedArray:
    number, has_null = len(items), None in items
    if not number:
        return PackedArray(kind.array_oid, struct.pack("!3i", 0, 0, kind.oid))
    head = struct.pack("!5i", 1, has_null, kind.oid, number, 1)
    if not kind.code:
        packed = {item: _item(kind, item) for item in set(items)}  # many texts of a column are equal
        return PackedArray(kind.array_oid, head + b"".join(map(packed.__getitem__, items)))
    if has_null:
        return PackedArray(kind.array_oid, head + b"".join(_item(kind, item) for item in items))
    converted = items if kind.convert is None else map(kind.convert, items)
    sizes = repeat(struct.calcsize(f"!{kind.code}"))
    body = struct.pack("!" + number * f"i{kind.code}", *chain.from_iterable(zip(sizes, converted)))  # noqa: B905
    return PackedArray(kind.array_oid, head + body)


def _item(kind: _ItemType, item: Any) -> bytes:
    if item is None:
        return _NULL
    value = item if kind.convert is None else kind.convert(item)
    data = struct.pack(f"!{kind.code}", value) if kind.code else value
    return struct.pack("!i", len(data)) + data


class _PackedArrayDumper(Dumper):
    """Passes packed arrays through; psycopg keeps one dumper for each of their types."""

    format = pq.Format.BINARY

    def get_key(self, obj: PackedArray, _format: PyFormat) -> Any:
        return PackedArray, obj.oid

    def upgrade(self, obj: PackedArray, _format: PyFormat) -> Dumper:
        dumper = type(self)(PackedArray)
        dumper.oid = obj.oid
        return dumper

    def dump(self, obj: PackedArray) -> bytes:
        return obj.data


psycopg.adapters.register_dumper(PackedArray, _PackedArrayDumper)
