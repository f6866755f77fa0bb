"""What importers of text share: lines, numbers, times and names."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import BinaryIO

from monitor.imports.formats.base import Misfit, Unreadable, time_at

MAX_LINE_BYTES = 1_000_000
MOST_SECONDS = 3.2e9  # a century: no run takes longer
_NAME_CHARACTERS = 60
_NO_SLUG = re.compile(r"[^A-Za-z0-9_]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of *stream*, decoded; bytes that are no UTF-8 are shown as ``\\xff``, so that messages have
    them.

    Raises:
        Unreadable: a line that is longer than any that we know.
    """
    number = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        if len(line) == MAX_LINE_BYTES:
            raise Unreadable(
                f"line {number}: expected at most {MAX_LINE_BYTES} bytes: this is no text of lines"
            )
        text = line.decode("utf-8", "backslashreplace")
        yield text.removeprefix("\ufeff") if number == 1 else text


def number(field: str, text: str, factor: float = 1.0) -> float:
    """The finite number that *text* is, times *factor*. Raises Misfit."""
    value = float(text) * factor if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise Misfit(field, "a finite number", text)
    return value


def seconds(field: str, text: str, factor: float = 1.0) -> float:
    """A duration, in units of *factor* seconds. Raises Misfit for one that is negative or longer than a
    century."""
    value = number(field, text, factor)
    if not 0 <= value <= MOST_SECONDS:
        raise Misfit(field, f"0 to {MOST_SECONDS:g} seconds", text)
    return value


def time(field: str, text: str, zone: tzinfo = UTC, form: str = "") -> datetime:
    """A time: by *form* as in ``strptime``; else seconds since 1970, or ISO 8601. What has no zone is of
    *zone*.

    Raises Misfit.
    """
    if not form and _NUMBER.fullmatch(text):
        return time_at(field, float(text))
    try:
        said = datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007
        return time_at(field, (said if said.tzinfo else said.replace(tzinfo=zone)).timestamp())
    except Misfit:
        raise
    except (ValueError, OverflowError):
        expected = f"as {form}" if form else "in seconds since 1970, or as in 2026-03-01T12:00:00Z"
        raise Misfit(field, f"a time {expected}", text) from None


def printable(text: str) -> str:
    """*text* for people: what would do something to their terminal is shown as ``\\x1b``."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def slug(*texts: str) -> str:
    """*texts* as part of the name of a series. Of different texts different names are made: where something
    had to go, or could be part of either of two, a digest of all of it comes behind."""
    said = "-".join(texts)
    plain = _NO_SLUG.sub("-", said).strip("-")[:_NAME_CHARACTERS]
    if plain == said and (len(texts) == 1 or said.count("-") == len(texts) - 1):
        return plain
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "backslashreplace")).hexdigest()[:6]
    return f"{plain}-{digest}" if plain else digest
