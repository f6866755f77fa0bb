"""Errors of a YAML file: each has its position, the expected value, and the nearest existing name.

Errors::

    InvalidYamlFile     all errors of a file     permanent
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

Path = tuple[str | int, ...]  # keys and indices from the top of the file: ("series", "main", "bindings")
Fault = tuple[Path, str]  # the path of an invalid value, and the message

_SHOWN_CHARACTERS = 60
_SHOWN_NAMES = 8


class Position(NamedTuple):
    """A position in a file; lines and columns count from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, order=True)
class Problem:
    """One error; *where* describes the path of the value and may be empty."""

    position: Position
    where: str
    message: str

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{self.position.line}:{self.position.column}: {text}"


class InvalidYamlFile(ValueError):
    """The file has errors, so it is not used; *problems* is sorted by line."""

    def __init__(self, name: str, problems: Collection[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(f"{name}:{problem}" for problem in self.problems))


def describe_key(path: Path) -> str:
    """Return the keys and indices of *path* as text: ``key "bindings.sources[0]"``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"key {quoted(text.removeprefix('.'))}"


def quoted(value: Any) -> str:
    """Return *value* as JSON on one line, without control characters, truncated."""
    text = json.dumps(value, ensure_ascii=not _is_printable(value), default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _is_printable(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def suggestion(name: str, valid_names: Collection[str]) -> str:
    """Return the end of a message about an unknown *name*.

    It suggests the nearest valid name or, if no name is near, lists the first ``_SHOWN_NAMES`` valid names.
    """
    names = sorted(valid_names)
    close = difflib.get_close_matches(name, names, n=1)
    if not close:
        close = [valid for valid in names if valid.lower() == name.lower()][:1]
    if close:
        return f"; did you mean {quoted(close[0])}?"
    more = ", ..." if len(names) > _SHOWN_NAMES else ""
    return f"; expected one of {', '.join(names[:_SHOWN_NAMES])}{more}" if names else ""
