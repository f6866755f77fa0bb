"""What importers of JSON share: a document of any size is read value by value, and however hostile it is, no
more than one of them lies in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import ijson

from monitor.imports.formats.base import Misfit, Unreadable
from monitor.imports.formats.text import printable

MAX_DEPTH = 32
MAX_PARTS = 100_000  # of one value
MAX_BYTES = 1_000_000  # of one text, and between two values

Event = tuple[str, Any]

_BUFFER_BYTES = 1 << 14
_OPENING, _CLOSING = ("start_map", "start_array"), ("end_map", "end_array")


class Document:
    """JSON, read from the front. Whoever asks for a part has to take all of it before he goes on.

    All of its methods raise Unreadable: it is no JSON, not what was asked for, or too large where it matters.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._events = _events(stream)

    def keys(self, what: str, first: Event | None = None) -> Iterator[str]:
        """The keys of an object, which *what* names for messages; the value of each is to be taken."""
        self._begin("start_map", f"an object: {what}", first)
        while (event := self.next())[0] == "map_key":
            yield event[1]

    def elements(self, what: str, first: Event | None = None) -> Iterator[Event]:
        """The first event of each element of an array; the rest of it is to be taken."""
        self._begin("start_array", f"an array: {what}", first)
        while (event := self.next())[0] not in _CLOSING:
            yield event

    def value(self, first: Event | None = None) -> Any:
        """The next value, or that which *first* began, as a whole."""
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
        """Take the next value, and forget it."""
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


def _events(stream: BinaryIO) -> Iterator[Event]:
    bounded = _Bounded(stream)
    depth = 0
    try:
        for event in ijson.basic_parse(bounded, buf_size=_BUFFER_BYTES, use_float=True):
            bounded.silent_bytes = 0
            depth += _step(event)
            if depth > MAX_DEPTH:
                raise Unreadable(f"expected JSON that is at most {MAX_DEPTH} deep")
            yield event
    except ijson.JSONError as error:
        said = _said(error)[:200]
        raise Unreadable(f"expected JSON, got something else, or it is cut off: {said}") from None
    raise Unreadable("expected more of the document")


def _said(error: ijson.JSONError) -> str:
    """In one line; of what is no text the parser tells bytes."""
    told = error.args[0] if error.args else ""
    text = told.decode("utf-8", "backslashreplace") if isinstance(told, bytes) else str(told)
    return printable(" ".join(text.split()))


class _Bounded:
    """*stream*, until it has given too much without anything in it; whoever finds something says so."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.silent_bytes = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.silent_bytes += len(data)
        if self.silent_bytes > MAX_BYTES:
            raise Unreadable(f"expected JSON with a value at least every {MAX_BYTES} bytes")
        return data


def number(field: str, value: object) -> float:
    """A number of JSON. Raises Misfit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(field, "a number", value)
    return float(value)
