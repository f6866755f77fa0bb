"""Macros: expand an entry into many series, over lists (``for``) and over all pairs (``mesh``)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations, product
from typing import Any

from monitor.core.yamlfile.problems import Path, quoted, suggestion
from monitor.operations.gridfile.definition import SeriesDefinition
from monitor.operations.gridfile.format import SeriesEntry

MAX_SERIES = 20_000  # of a file, after expansion
PAIR = ("source", "target")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")

Value = str | int | float | bool


class InvalidMacro(ValueError):
    """A macro cannot be expanded; *path* is the path of the error in the entry."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


def count(series: SeriesEntry) -> int:
    """Return the number of series that *series* expands to, without expanding it."""
    pairs = 1
    if series.mesh is not None:
        size = len(series.mesh.over)
        pairs = size * (size - 1) // (2 if series.mesh.unordered else 1)
    return pairs * math.prod(len(values) for values in series.for_.values())


def expand(name: str, series: SeriesEntry) -> Iterator[SeriesDefinition]:
    """Yield the series that the entry *series* expands to, in the order of its lists.

    Raises:
        InvalidMacro: a value of a list is neither text nor number, or a placeholder is unknown.
    """
    _check_values(series)
    fields = {field: value for field, value in series.model_dump().items() if field not in {"for_", "mesh"}}
    fields["bindings"] = {role: tuple(names) for role, names in fields["bindings"].items()}
    if not series.for_ and series.mesh is None:
        yield SeriesDefinition(name=name, **fields)
        return
    for values in _combinations(series):
        substituted = {field: _substitute(value, values, (field,)) for field, value in fields.items()}
        yield SeriesDefinition(name=str(_substitute(name, values, ())), **substituted)


def _check_values(series: SeriesEntry) -> None:
    lists: list[tuple[Path, list[Any]]] = [(("for", name), values) for name, values in series.for_.items()]
    if series.mesh is not None:
        lists.append((("mesh", "over"), series.mesh.over))
        for name in sorted(set(PAIR) & series.for_.keys()):
            raise InvalidMacro(("for", name), f"{quoted(name)} is already a placeholder of mesh")
    for path, values in lists:
        for i, value in enumerate(values):
            if not isinstance(value, Value):
                raise InvalidMacro((*path, i), f"expected a text or a number, got {quoted(value)}")


def _combinations(series: SeriesEntry) -> Iterator[Mapping[str, Value]]:
    pairs: list[dict[str, Value]] = [{}]
    if series.mesh is not None:
        choose = combinations if series.mesh.unordered else permutations
        pairs = [dict(zip(PAIR, pair, strict=True)) for pair in choose(series.mesh.over, 2)]
    for values in product(*series.for_.values()):
        for pair in pairs:
            yield {**dict(zip(series.for_, values, strict=True)), **pair}


def _substitute(value: Any, values: Mapping[str, Value], path: Path) -> Any:
    """Return *value* with all placeholders in its texts replaced by *values*; *path* is for errors."""
    if isinstance(value, str):
        return _substitute_text(value, values, path)
    if isinstance(value, dict):
        return {key: _substitute(inner, values, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_substitute(inner, values, (*path, i)) for i, inner in enumerate(value))
    return value


def _substitute_text(text: str, values: Mapping[str, Value], path: Path) -> Value:
    def value_of(match: re.Match[str]) -> Value:
        name = match[1]
        if name is None:
            return match[0][0]
        if name not in values:
            raise InvalidMacro(path, f"there is no placeholder {quoted(match[0])}{suggestion(name, values)}")
        return values[name]

    whole = _PLACEHOLDER.fullmatch(text) if path[:1] == ("parameters",) else None
    return value_of(whole) if whole else _PLACEHOLDER.sub(lambda match: str(value_of(match)), text)
