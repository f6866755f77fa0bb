"""From plain values to the models of the format, with every error in the words of this house."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from monitor.gridfile.format import NAME, VERSION, GridFile
from monitor.gridfile.problems import Path, nearest, shown

_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "dict_type": "names and values",
    "model_type": "names and values",
    "list_type": "a list, such as [a, b]",
    "datetime_type": "a time, such as 2005-03-01T00:00:00Z",
    "string_pattern_mismatch": f"a name of {NAME}",
    "string_too_short": "a name",
    "literal_error": "{expected}",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:,.0f}",
}
_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_ABSOLUTE = "^/"
_MERGE = "<<"
_MACROS = ("for", "mesh")

Found = tuple[Path, str]


def parse(data: Any) -> tuple[GridFile, list[Found]]:
    """The file that *data* is, and what is wrong with it.

    What is wrong is left out of the file, so that the rest can be looked at: a key if it may be left out,
    else its noun.
    """
    found = list(_errors(data))
    sound = data if isinstance(data, dict) else {}
    for path, _ in found:
        sound = _without(sound, _removable(path))
    for path, _ in list(_errors(sound)):
        sound = _without(sound, path[:2])
    return GridFile.model_validate({**sound, "version": VERSION}), found


def _errors(data: Any) -> Iterator[Found]:
    try:
        GridFile.model_validate(data)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path = tuple(part for part in detail["loc"] if part != "[key]")
            yield path, _message(path, detail)


def _removable(path: Path) -> Path:
    """What goes with *path*: a list as a whole, and of a macro all that it makes."""
    if len(path) > 2 and path[2] in _MACROS:
        return path[:2]
    return path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))]


def _without(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """*data* without what is at *path*."""
    if not path or path[0] not in data:
        return data
    kept, key = dict(data), str(path[0])
    inner = kept.pop(key)
    if len(path) > 1 and isinstance(inner, dict):
        kept[key] = _without(inner, path[1:])
    return kept


def _message(path: Path, detail: ErrorDetails) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(str(path[-1]), _properties(path[:-1]))
    if kind == "missing":
        return f"it is missing; expected {_description(path)}"
    if kind == "value_error":
        return str(context["error"])
    return f"expected {_expected(kind, context) or detail['msg']}, got {shown(value)}{_hint(kind, value)}"


def _unknown(key: str, known: Collection[str]) -> str:
    if key == _MERGE:
        return "merge keys are not read; say it in each place, or once for many with for"
    return f"there is no such key{nearest(key, known)}"


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    if context.get("pattern") == _ABSOLUTE:
        return "an absolute directory, such as /scratch"
    return _EXPECTED.get(kind, "").format(**context).removeprefix("'', ")


def _hint(kind: str, value: Any) -> str:
    if kind == "string_too_long":
        return f" ({len(value)})"
    if kind == "bool_type" and isinstance(value, str) and value.lower() in _BOOLEANS:
        return f"; did you mean {_BOOLEANS[value.lower()]}?"
    if kind == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    if kind == "list_type" and isinstance(value, str):
        return f"; did you mean [{value}]?" if re.fullmatch(r"[\w-]+", value) else ""
    return ""


def _description(path: Path) -> str:
    text: str = _properties(path[:-1])[str(path[-1])].get("description", "")
    return text[:1].lower() + text[1:].rstrip(".")


def _properties(path: Path) -> Mapping[str, Any]:
    """The keys that there may be at *path*, each with its schema."""
    schema: Mapping[str, Any] = _schema()
    for part in path:
        schema = _below(schema, part)
    properties: Mapping[str, Any] = schema.get("properties", {})
    return properties


def _below(schema: Mapping[str, Any], part: str | int) -> Mapping[str, Any]:
    """The schema of *part* of what *schema* describes."""
    inner = schema.get("properties", {}).get(part)
    if inner is None:
        patterns = schema.get("patternProperties", {})
        of_list = schema.get("items") if isinstance(part, int) else None
        inner = of_list or next(iter(patterns.values()), None) or schema.get("additionalProperties") or {}
    for one in _alternatives(inner):
        if "$ref" in one:
            found: Mapping[str, Any] = _schema()["$defs"][one["$ref"].rpartition("/")[2]]
            return found
    return inner if isinstance(inner, dict) else {}


def _alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        yield from schema.get("anyOf", [])
        yield from schema.get("allOf", [])


@cache
def _schema() -> dict[str, Any]:
    return GridFile.model_json_schema()
