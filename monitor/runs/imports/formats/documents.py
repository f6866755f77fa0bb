"""Read JSON documents of any size value by value; the depth and the size of each value are limited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import ijson

from monitor.runs.imports.formats.base import InvalidField, Unreadable
from monitor.runs.imports.formats.text import printable

MAX_DEPTH = 32
MAX_PARTS = 100_000  # parts of one value
MAX_BYTES = 1_000_000  # the longest string, and the most bytes between two values

Event = tuple[str, Any]

_BUFFER_BYTES = 1 << 14
_OPENING, _CLOSING = ("start_map", "start_array"), ("end_map", "end_array")


class Readable(Protocol):
    """A stream of bytes, or what filters one."""

    def read(self, size: int, /) -> bytes: ...


class Document:
    """A forward-only JSON reader. Callers must consume a value fully before they read the next value.

    In all methods, *first* is an event that the caller has read already. All methods raise Unreadable for
    invalid JSON, an unexpected type and an exceeded limit.
    """

    def __init__(self, stream: Readable) -> None:
        self._events = _events(stream)

    def keys(self, what: str, first: Event | None = None) -> Iterator[str]:
        """Yield the keys of an object; the caller consumes each value. *what* is for error messages."""
        self._begin("start_map", f"an object: {what}", first)
        while (event := self.next())[0] == "map_key":
            yield event[1]

    def elements(self, what: str, first: Event | None = None) -> Iterator[Event]:
        """Yield the first event of each element of an array; the caller consumes the rest of the element."""
        self._begin("start_array", f"an array: {what}", first)
        while (event := self.next())[0] not in _CLOSING:
            yield event

    def value(self, first: Event | None = None) -> Any:
        """Return the next value, or the value whose first event is *first*."""
        builder, depth, parts = ijson.ObjectBuilder(), 0, 0
        event = first or self.next()
        while True:
            builder.event(*event)
            depth, parts = depth + _step(event), parts + 1
            if depth == 0:
                return builder.value
            if parts > MAX_PARTS:
                raise Unreadable(f"expected values of at most {MAX_PARTS} parts")
            event = self.next()

    def skip(self) -> None:
        """Consume the next value."""
        depth = _step(self.next())
        while depth:
            depth += _step(self.next())

    def next(self) -> Event:
        return next(self._events)

    def _begin(self, event: str, expected: str, first: Event | None) -> None:
        got, value = first or self.next()
        if got != event:
            shown = got.replace("start_map", "an object").replace("start_array", "an array")
            raise Unreadable(f"expected {expected}; got {shown if value is None else repr(value)[:80]}")


def _step(event: Event) -> int:
    return (event[0] in _OPENING) - (event[0] in _CLOSING)


def _events(stream: Readable) -> Iterator[Event]:
    bounded = _Bounded(stream)
    depth = 0
    try:
        for event in ijson.basic_parse(bounded, buf_size=_BUFFER_BYTES, use_float=True):
            bounded.bytes_since_event = 0
            depth += _step(event)
            if depth > MAX_DEPTH:
                raise Unreadable(f"expected JSON that is at most {MAX_DEPTH} deep")
            yield event
    except ijson.JSONError as error:
        message = _one_line(error)[:200]
        raise Unreadable(f"expected JSON, got something else or a truncated document: {message}") from None
    raise Unreadable("expected more of the document; it is truncated")


def _one_line(error: ijson.JSONError) -> str:
    """Return the message of *error* in one line; the parser gives it as bytes if the input is not UTF-8."""
    message = error.args[0] if error.args else ""
    text = message.decode("utf-8", "backslashreplace") if isinstance(message, bytes) else str(message)
    return printable(" ".join(text.split()))


class _Bounded:
    """Reads *stream*, with a limit on the bytes between parser events; the parser loop resets the count."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.bytes_since_event = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.bytes_since_event += len(data)
        if self.bytes_since_event > MAX_BYTES:
            raise Unreadable(f"expected JSON with a value at least every {MAX_BYTES} bytes")
        return data


def number(field: str, value: object) -> float:
    """Return *value* as a float if it is a JSON number. Raises InvalidField for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidField(field, "a number", value)
    return float(value)
