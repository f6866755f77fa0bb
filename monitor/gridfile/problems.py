"""What is wrong with a grid file: where, what was expected, and the nearest name that there is.

Errors::

    InvalidGridFile     everything that is wrong with a file, all at once     for good
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

Path = tuple[str | int, ...]  # keys and positions from the top of the file: ("series", "main", "bindings")

NOUNS = {
    "sites": "site",
    "resources": "resource",
    "suites": "suite",
    "series": "series",
    "maintenance": "maintenance",
    "alerts": "alert rule",
}
_SHOWN_CHARACTERS = 60
_SHOWN_NAMES = 8


class Place(NamedTuple):
    """A place in a file. The first line and the first column are 1, as editors count."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong; *where* is a key as a person would say it, and may be empty."""

    place: Place
    where: str
    message: str

    def __str__(self) -> str:
        said = f"{self.where}: {self.message}" if self.where else self.message
        return f"{self.place.line}:{self.place.column}: {said}"


class InvalidGridFile(ValueError):
    """A file from which nothing is taken. *problems* are all that were found, by line."""

    def __init__(self, name: str, problems: Collection[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(f"{name}:{problem}" for problem in self.problems))


def said(path: Path) -> str:
    """*path* in words: ``series main, key "bindings.sources[0]"``."""
    if len(path) >= 2 and path[0] in NOUNS:
        name = str(path[1])
        noun = f"{NOUNS[str(path[0])]} {name if name and name.isprintable() else shown(name)}"
        return f"{noun}, {_key(path[2:])}" if len(path) > 2 else noun
    return _key(path) if path else ""


def _key(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"key {shown(text.removeprefix('.'))}"


def shown(value: Any) -> str:
    """*value* as JSON on one line without control characters, cut where it is long."""
    text = json.dumps(value, ensure_ascii=not _is_printable(value), default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _is_printable(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def nearest(name: str, known: Collection[str]) -> str:
    """The end of an error about a name that there is not: the nearest there is, or all if they are few."""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    if not close:  # only the case differs, say
        close = [one for one in sorted(known) if one.lower() == name.lower()][:1]
    if close:
        return f"; did you mean {shown(close[0])}?"
    names = sorted(known)
    more = ", ..." if len(names) > _SHOWN_NAMES else ""
    return f"; known are {', '.join(names[:_SHOWN_NAMES])}{more}" if names else ""
