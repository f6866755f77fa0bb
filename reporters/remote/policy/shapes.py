"""Types of the values in a site policy. Each type reads a value strictly and describes itself as JSON schema.

In every object, a key that begins with "comment" or "//" is a comment: its value may be anything. Any other
key that is not declared is an error, because a misspelt rule would otherwise not apply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol, Union

from reporters.fields import shown

COMMENT = "^(comment|//)"  # a regular expression, of Python and of JSON schema
Path = tuple[Union[str, int], ...]


class InvalidPolicy(ValueError):
    """A value of the policy is invalid.

    *path* leads to the value. The text of the error contains the value; ``expected`` does not contain it, so
    that it may be told to the server whatever the policy discloses.
    """

    def __init__(self, path: Path, expected: str, found: str) -> None:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
        super().__init__(f"{where}: expected {expected}, got {found}" if where else f"expected {expected}")
        self.path = path
        self.expected = expected


class Shape(Protocol):
    """The type of a value."""

    def read(self, value: object, path: Path) -> Any:
        """Return *value*, checked and converted; *path* is its place in the policy.

        Raises:
            InvalidPolicy: *value* has another shape.
        """

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the values that ``read`` accepts."""


def _anything(_text: str) -> str:
    return ""


@dataclass(frozen=True)
class TextShape:
    """A text that *pattern* matches as a whole, and about which *problem* returns no message.

    *problem* checks what a pattern cannot, such as that a time zone exists.
    """

    pattern: str
    expected: str
    description: str = ""
    problem: Callable[[str], str] = _anything

    def read(self, value: object, path: Path) -> str:
        if not isinstance(value, str) or re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise InvalidPolicy(path, self.expected, shown(value))
        problem = self.problem(value)
        if problem:
            raise InvalidPolicy(path, self.expected, f"{shown(value)}: {problem}")
        return value

    def schema(self) -> dict[str, Any]:
        return {**_described(self.description), "type": "string", "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class ChoiceShape:
    """One of some texts; *choices* has a description of each."""

    choices: Mapping[str, str]
    description: str = ""

    def read(self, value: object, path: Path) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise InvalidPolicy(path, f"one of {', '.join(self.choices)}", shown(value))
        return value

    def schema(self) -> dict[str, Any]:
        meanings = "; ".join(f"{choice}: {meaning}" for choice, meaning in self.choices.items())
        return {**_described(f"{self.description} ({meanings})"), "enum": list(self.choices)}


@dataclass(frozen=True)
class NumberShape:
    """A finite number of at least *minimum*; an integer if *is_integer*."""

    minimum: float
    description: str = ""
    is_integer: bool = False

    def read(self, value: object, path: Path) -> float:
        kind = "an integer" if self.is_integer else "a number"
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if (
            not is_number
            or not isinstance(value, (int, float))
            or not self.minimum <= value < math.inf
            or (self.is_integer and not isinstance(value, int))
        ):
            raise InvalidPolicy(path, f"{kind} of at least {self.minimum:g}", shown(value))
        return value

    def schema(self) -> dict[str, Any]:
        kind = "integer" if self.is_integer else "number"
        return {**_described(self.description), "type": kind, "minimum": self.minimum}


@dataclass(frozen=True)
class ListShape:
    """A list whose values all have the shape *of*."""

    of: Shape
    description: str = ""

    def read(self, value: object, path: Path) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise InvalidPolicy(path, "a list", shown(value))
        return tuple(self.of.read(item, (*path, index)) for index, item in enumerate(value))

    def schema(self) -> dict[str, Any]:
        return {**_described(self.description), "type": "array", "items": self.of.schema()}


@dataclass(frozen=True)
class ObjectShape:
    """An object with some of *members*, and with all of *required*; every other key must be a comment."""

    members: Mapping[str, Shape]
    required: Sequence[str] = field(default=())
    description: str = ""

    def read(self, value: object, path: Path) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidPolicy(path, "an object", shown(value))
        for name in value:
            if name not in self.members and re.match(COMMENT, name) is None:
                raise InvalidPolicy((*path, name), f"one of the keys {', '.join(self.members)}", "this key")
        for name in self.required:
            if name not in value:
                raise InvalidPolicy(path, f"the key {name}", "none")
        return {
            name: self.members[name].read(item, (*path, name))
            for name, item in value.items()
            if name in self.members
        }

    def schema(self) -> dict[str, Any]:
        return {
            **_described(self.description),
            "type": "object",
            "properties": {name: shape.schema() for name, shape in self.members.items()},
            "patternProperties": {COMMENT: True},
            "additionalProperties": False,
            **({"required": list(self.required)} if self.required else {}),
        }


def _described(description: str) -> dict[str, str]:
    return {"description": description} if description else {}
