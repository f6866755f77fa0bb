"""Options of ways to reach a site, as JSON has them: whether each is of the type that its name stands for.

A type is written as in an annotation of Python: "str | None", "int", "Sequence[str]".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Callable


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_IS: Mapping[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool),
    "float": lambda value: _is_number(value) and (isinstance(value, int) or math.isfinite(value)),
    "int": lambda value: _is_number(value) and isinstance(value, int),
    "str": lambda value: isinstance(value, str) and "\0" not in value,
    "Sequence[str]": lambda value: isinstance(value, (list, tuple)) and all(map(_IS["str"], value)),
}


def unfit(options: Mapping[str, Any], types: Mapping[str, str]) -> str:
    """What is wrong with the first of *options* that is not of its type; empty if none is."""
    for name, value in options.items():
        if not any(_IS[one](value) for one in types[name].split(" | ")):
            return f"{name}: expected {types[name]}, got {value!r}"
        if name == "port" and value is not None and not 0 < value < 65536:
            return f"port: {value} is outside 1 to 65535"
        if _is_number(value) and value < 0:
            return f"{name}: {value} is negative"
    return ""
