"""What is repeated of foreign input in answers, on pages and in the log: bounded in length and in number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_NAME = 100  # characters of a name, a key or a value within a message
MOST_MESSAGE = 2_000  # characters of a message
MOST_ERRORS = 20  # listed in an answer
MOST_PARTS = 20  # of the location of an error


def clipped(text: str, most: int = MOST_NAME) -> str:
    """Return *text*, of a longer one the first *most* characters and its length."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def printable(text: str, most: int = MOST_NAME) -> str:
    """Return *text* clipped, on one line, and with escapes for what terminals and logs do not print."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in clipped(text, most)
    )


def clipped_texts(value: Any, most: int = MOST_MESSAGE) -> Any:
    """Return *value* as JSON has it, with each text in it clipped to *most* characters."""
    if isinstance(value, str):
        return clipped(value, most)
    if isinstance(value, Mapping):
        return {clipped(str(key)): clipped_texts(inner, most) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clipped_texts(inner, most) for inner in value]
    return value
