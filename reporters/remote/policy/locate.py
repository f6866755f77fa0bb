"""Find the line and the column of a value in a JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

_BLANK = re.compile(r"[ \t\n\r]*")
_decoder = json.JSONDecoder()


@dataclass(frozen=True)
class TextPosition:
    line: int
    column: int


def position_of(text: str, path: Sequence[str | int]) -> TextPosition | None:
    """Return where the value at *path* begins, or its key if *path* ends with a key.

    *text* must be valid JSON. None if *path* leads nowhere.
    """
    at = _after_blank(text, 0)
    for depth, step in enumerate(path):
        entry = _entry(text, at, step)
        if entry is None:
            return None
        key_at, value_at = entry
        at = key_at if depth == len(path) - 1 else value_at
    return TextPosition(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _entry(text: str, at: int, step: str | int) -> tuple[int, int] | None:
    """Return where the entry *step* of the object or list at *at* begins, and where its value begins."""
    is_object = text[at] == "{"
    if text[at] not in "{[" or is_object != isinstance(step, str):
        return None
    index, at = 0, _after_blank(text, at + 1)
    while text[at] not in "}]":
        entry_at = at
        if is_object:
            name, at = _decoder.raw_decode(text, at)
            at = _after_blank(text, _after_blank(text, at) + 1)  # the colon
        if (name if is_object else index) == step:
            return entry_at, at
        _, at = _decoder.raw_decode(text, at)
        at = _after_blank(text, at)
        index, at = index + 1, _after_blank(text, at + (text[at] == ","))
    return None


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
