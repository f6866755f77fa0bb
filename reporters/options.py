"""Check the types of JSON options of shells, transfers and batch systems.

A type is written like a Python annotation: "str | None", "int", "Sequence[str]".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Callable

from probes.base import TYPES_IN_WORDS


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_HAS_TYPE: Mapping[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool),
    "float": lambda value: _is_number(value) and (isinstance(value, int) or math.isfinite(value)),
    "int": lambda value: _is_number(value) and isinstance(value, int),
    "str": lambda value: isinstance(value, str) and "\0" not in value,
    "Sequence[str]": lambda value: isinstance(value, (list, tuple)) and all(map(_HAS_TYPE["str"], value)),
}
_IN_WORDS: Mapping[str, str] = {
    **{kind.__name__: words for kind, words in TYPES_IN_WORDS.items()},
    "None": "null",
    "Sequence[str]": "a list of texts",
}


def invalid_option(options: Mapping[str, Any], types: Mapping[str, str]) -> str:
    """Return a message about the first invalid option, by the *types* of options; empty if all are valid."""
    for name, value in options.items():
        accepted = types[name].split(" | ")
        if not any(_HAS_TYPE[type_name](value) for type_name in accepted):
            words = " or ".join(_IN_WORDS[type_name] for type_name in accepted)
            return f"{name}: expected {words}, got {value!r}"
        if name == "port" and value is not None and not 0 < value < 65536:
            return f"port: {value} is outside 1 to 65535"
        if _is_number(value) and value < 0:
            return f"{name}: {value} is negative"
    return ""
