"""Strict reading of JSON: values are read by name, type and range; an error names the invalid field.

Whatever the input, ``Unfit`` is the only error raised. Its message names the field, what was expected and
what was there: ``stages[2].seconds: expected a finite number >= 0, got 'x'``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Callable, TypeVar

MAX_DEPTH = 32
_INTEGER_LIMIT = 2**63  # of a 64-bit integer, as databases hold it
_SHOWN_CHARACTERS = 60
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL stores no NUL, UTF-8 no lone surrogate
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

Item = TypeVar("Item")


class Unfit(ValueError):
    """A value is missing, of the wrong type or outside its range."""


def parse_time(text: str) -> datetime:
    """Parse RFC 3339 with any offset, to the microsecond; return UTC.

    Raises:
        ValueError: *text* has another format.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a time as in RFC 3339 with a zone, got {shown(text)}")
    day, clock, fraction, zone = match.groups()
    offset = "+00:00" if zone in "Zz" else zone
    microseconds = (fraction or "").ljust(6, "0")[:6]  # Python 3.9 reads three or six digits only
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{microseconds}{offset}").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(f"expected a time as in RFC 3339 with a zone, got {shown(text)}") from None


def clean_text(text: str) -> str:
    """Replace the characters of *text* that a database cannot store: NUL and lone surrogates."""
    return _NOT_STORABLE.sub("\ufffd", text)


def shown(value: object) -> str:
    """Return the repr of *value*, cut short for messages."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def parse_object(data: bytes | str, *, max_bytes: int) -> dict[str, Any]:
    """Parse one JSON object: UTF-8, finite numbers, unique names, nested at most ``MAX_DEPTH`` levels.

    Raises:
        Unfit: *data* are not such an object, or are more than *max_bytes*.
    """
    document = _loads(_decoded(data, max_bytes))
    if not isinstance(document, dict):
        raise Unfit(f"expected a JSON object, got {shown(document)}")
    _refuse_unstorable(document, "", MAX_DEPTH)
    return document


def _decoded(data: bytes | str, max_bytes: int) -> str:
    try:
        encoded = data.encode() if isinstance(data, str) else bytes(data)
        text = encoded.decode()
    except UnicodeError as error:
        raise Unfit(f"not UTF-8: {error}") from None
    if len(encoded) > max_bytes:
        raise Unfit(f"too large: expected at most {max_bytes} bytes, got {len(encoded)}")
    return text


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except Unfit:
        raise
    except RecursionError:
        raise Unfit(f"nested too deep: expected at most {MAX_DEPTH} levels") from None
    except ValueError as error:  # not JSON, or an integer of thousands of digits
        raise Unfit(f"not JSON: {error}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Unfit(f"the name {shown(name)} occurs twice in one object")
            seen.add(name)
    return values


def _refuse_constant(text: str) -> Any:
    raise Unfit(f"not JSON: {text} is not a finite number")


def _refuse_unstorable(value: object, path: str, levels: int) -> None:
    """Raise Unfit if a database cannot store *value*, or if *value* is nested deeper than *levels*.

    *path* names the value in the message.
    """
    if levels < 0:
        raise Unfit(f"nested too deep: expected at most {MAX_DEPTH} levels")
    if isinstance(value, str) and _NOT_STORABLE.search(value):
        raise Unfit(f"{path}: expected text without NUL and lone surrogates, got {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise Unfit(f"{path}: expected a finite number, got {value}")
    if isinstance(value, int) and not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise Unfit(f"{path}: expected an integer of 64 bits, got one of {value.bit_length()} bits")
    if isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_unstorable(item, f"{path}[{index}]", levels - 1)
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_unstorable(name, path or "(a name)", levels)
            _refuse_unstorable(item, f"{path}.{name}" if path else name, levels - 1)


class Fields:
    """The fields of one JSON object. Records the fields that are read; ``unread`` returns the rest."""

    def __init__(self, values: object, path: str = "") -> None:
        if not isinstance(values, Mapping):
            raise Unfit(f"{path}: expected an object, got {shown(values)}")
        self._values = values
        self._path = path
        self._read: dict[str, Fields | list[Fields] | None] = {}

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def refuse(self, name: str, expected: str) -> Unfit:
        """Return the error for an invalid field *name*; *expected* describes the valid values."""
        return Unfit(f"{self.path(name)}: expected {expected}, got {shown(self._values.get(name))}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def value(self, name: str, expected: str) -> Any:
        if name not in self._values:
            raise Unfit(f"{self.path(name)}: expected {expected}, but it is missing")
        self._read.setdefault(name, None)
        return self._values[name]

    def text(
        self, name: str, *, maximum: int | None = None, pattern: str | None = None, empty: bool = True
    ) -> str:
        expected = "text" if pattern is None else f"text like {pattern}"
        value = self.value(name, expected)
        if not isinstance(value, str) or (pattern is not None and not re.fullmatch(pattern, value)):
            raise self.refuse(name, expected)
        if not value and not empty:
            raise self.refuse(name, "text that is not empty")
        if maximum is not None and len(value) > maximum:
            raise self.refuse(name, f"at most {maximum} characters")
        return value

    def texts(self, name: str, *, maximum: int | None = None) -> tuple[str, ...]:
        value = self.value(name, "a list of texts")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(name, "a list of texts")
        for index, item in enumerate(value):
            if maximum is not None and len(item) > maximum:
                raise Unfit(
                    f"{self.path(name)}[{index}]: expected at most {maximum} characters, got {shown(item)}"
                )
        return tuple(value)

    def choice(self, name: str, choices: Iterable[str]) -> str:
        valid = tuple(choices)
        value = self.value(name, f"one of {', '.join(valid)}")
        if value not in valid:
            raise self.refuse(name, f"one of {', '.join(valid)}")
        return str(value)

    def number(self, name: str, *, minimum: float = -math.inf, maximum: float = math.inf) -> float:
        expected = "a finite number" if minimum == -math.inf else f"a finite number >= {minimum:g}"
        value = self.value(name, expected)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(name, expected)
        if not math.isfinite(value) or value < minimum:
            raise self.refuse(name, expected)
        if value > maximum:
            raise self.refuse(name, f"at most {maximum:g}")
        return float(value)

    def integer(self, name: str, *, minimum: int | None = None) -> int:
        expected = "an integer" if minimum is None else f"an integer >= {minimum}"
        value = self.value(name, expected)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(name, expected)
        if minimum is not None and value < minimum:
            raise self.refuse(name, expected)
        return value

    def boolean(self, name: str) -> bool:
        value = self.value(name, "true or false")
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def time(self, name: str) -> datetime:
        try:
            return parse_time(self.text(name))
        except Unfit:
            raise
        except ValueError as error:
            raise Unfit(f"{self.path(name)}: {error}") from None

    def optional(self, name: str, read: Callable[[str], Item]) -> Item | None:
        """Return ``read(name)``, where *read* is a method such as ``text``; None if the field is null."""
        return None if self.value(name, "a value or null") is None else read(name)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.value(name, "an object")
        if not isinstance(value, dict):
            raise self.refuse(name, "an object")
        return value

    def fields(self, name: str) -> Fields:
        """Return the fields of the object that is in the field *name*."""
        inner = Fields(self.value(name, "an object"), self.path(name))
        self._read[name] = inner
        return inner

    def each(self, name: str, *, at_most: int | None = None) -> Sequence[Fields]:
        """Return the fields of each object in the list that is in the field *name*.

        The list has at most *at_most* objects.
        """
        values = self.value(name, "a list")
        if not isinstance(values, list):
            raise self.refuse(name, "a list")
        if at_most is not None and len(values) > at_most:
            raise Unfit(f"{self.path(name)}: expected at most {at_most:,}, got {len(values):,}")
        inner = [Fields(value, f"{self.path(name)}[{index}]") for index, value in enumerate(values)]
        self._read[name] = inner
        return inner

    def unread(self) -> dict[str, Any]:
        """Return the fields that were not read, nested as in the document.

        A field of the fourth object in the list ``stages`` is at ``["stages"]["3"]``.
        """
        rest = {name: value for name, value in self._values.items() if name not in self._read}
        for name, inner in self._read.items():
            if isinstance(inner, Fields):
                nested = inner.unread()
            else:
                items = {str(index): item.unread() for index, item in enumerate(inner or ())}
                nested = {index: unread for index, unread in items.items() if unread}
            if nested:
                rest[name] = nested
        return rest
