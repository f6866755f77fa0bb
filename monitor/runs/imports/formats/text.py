"""Parse lines, numbers, times and names of text formats."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import BinaryIO

from monitor.runs.imports.formats.base import InvalidField, Unreadable, time_at

MAX_LINE_BYTES = 1_000_000
MAX_SECONDS = 3.2e9  # a century
_NAME_CHARACTERS = 60
_NOT_SLUG = re.compile(r"[^A-Za-z0-9_]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def lines(stream: BinaryIO) -> Iterator[str]:
    """Yield the decoded lines of *stream*; bytes that are not UTF-8 become ``\\xff``.

    Raises:
        Unreadable: a line has more than MAX_LINE_BYTES.
    """
    number = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        if len(line) == MAX_LINE_BYTES:
            raise Unreadable(f"line {number}: expected a text with lines of at most {MAX_LINE_BYTES} bytes")
        text = line.decode("utf-8", "backslashreplace")
        yield text.removeprefix("\ufeff") if number == 1 else text


def number(field: str, text: str, factor: float = 1.0) -> float:
    """Return the number *text* times *factor*; *field* is the name of the field, for the error.

    Raises:
        InvalidField: *text* is no finite number.
    """
    value = float(text) * factor if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise InvalidField(field, "a finite number", text)
    return value


def seconds(field: str, text: str, factor: float = 1.0) -> float:
    """Return the number *text* times *factor* as a duration in seconds; *field* is for the error.

    Raises:
        InvalidField: *text* is no number, or the duration is negative or longer than a century.
    """
    value = number(field, text, factor)
    if not 0 <= value <= MAX_SECONDS:
        raise InvalidField(field, f"0 to {MAX_SECONDS:g} seconds", text)
    return value


def time(field: str, text: str, zone: tzinfo = UTC, time_format: str = "") -> datetime:
    """Parse *text* in the ``strptime`` format *time_format*; by default as seconds since 1970 or ISO 8601.

    A time without a zone is in *zone*.

    Raises:
        InvalidField: *text* does not have this format.
    """
    if not time_format and _NUMBER.fullmatch(text):
        return time_at(field, float(text))
    try:
        parsed = datetime.strptime(text, time_format) if time_format else datetime.fromisoformat(text)  # noqa: DTZ007
        return time_at(field, (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).timestamp())
    except InvalidField:
        raise
    except (ValueError, OverflowError):
        expected = (
            f"in the format {time_format}"
            if time_format
            else "in seconds since 1970, or such as 2026-03-01T12:00:00Z"
        )
        raise InvalidField(field, f"a time {expected}", text) from None


def printable(text: str) -> str:
    """Return *text* with characters that control a terminal escaped, for example as ``\\x1b``."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def slug(*texts: str) -> str:
    """Join *texts* to a part of a series name; different texts give different names.

    A digest is appended if characters were replaced, or if hyphens in the texts make their borders ambiguous.
    """
    joined = "-".join(texts)
    plain = _NOT_SLUG.sub("-", joined).strip("-")[:_NAME_CHARACTERS]
    if plain == joined and (len(texts) == 1 or joined.count("-") == len(texts) - 1):
        return plain
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "backslashreplace")).hexdigest()[:6]
    return f"{plain}-{digest}" if plain else digest
