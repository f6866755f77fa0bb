"""Validate plain values with pydantic models; translate pydantic's errors.

A message names the expected value in the words of the format, what was found, and the nearest valid name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from monitor.core.yamlfile.problems import Fault, Path, quoted, suggestion

NAME = "letters, digits, - and _"
_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list, such as [a, b]",
    "datetime_type": "a time, such as 2005-03-01T00:00:00Z",
    "string_pattern_mismatch": f"a name of {NAME}",
    "string_too_short": "a name",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:,.0f}",
}
_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_ABSOLUTE = "^/"
DASHED = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_MERGE = "<<"

Model = type[BaseModel]


def faults(model: Model, data: Any) -> Iterator[Fault]:
    """Return the faults of *data*, a value without positions, as a *model*."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path = tuple(part for part in detail["loc"] if part != "[key]")
            yield path, _message(model, path, detail)


def _message(model: Model, path: Path, detail: ErrorDetails) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(str(path[-1]), _properties(model, path[:-1]))
    if kind == "missing":
        return f"it is missing; expected {_description(model, path)}"
    if kind == "value_error":
        return str(context["error"])
    return f"expected {_expected(kind, context) or detail['msg']}, got {quoted(value)}{_hint(kind, value)}"


def _unknown_key(key: str, valid_keys: Collection[str]) -> str:
    if key == _MERGE:
        return "merge keys are not supported; repeat the value, or use for"
    return f"unknown key{suggestion(key, valid_keys)}"


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    if context.get("pattern") == _ABSOLUTE:
        return "an absolute directory, such as /scratch"
    if context.get("pattern") == DASHED:
        return "a name of lower-case letters and digits with dashes between them"
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


def _description(model: Model, path: Path) -> str:
    text: str = _properties(model, path[:-1])[str(path[-1])].get("description", "")
    return text[:1].lower() + text[1:].rstrip(".")


def _properties(model: Model, path: Path) -> Mapping[str, Any]:
    """Return the schemas of the keys that are valid at *path*."""
    schema: Mapping[str, Any] = _schema(model)
    for part in path:
        schema = _below(model, schema, part)
    properties: Mapping[str, Any] = schema.get("properties", {})
    return properties


def _below(model: Model, schema: Mapping[str, Any], part: str | int) -> Mapping[str, Any]:
    """Return the schema of *part* (a key or an index) within a value that has *schema*."""
    inner = schema.get("properties", {}).get(part)
    if inner is None:
        patterns = schema.get("patternProperties", {})
        items = schema.get("items") if isinstance(part, int) else None
        inner = items or next(iter(patterns.values()), None) or schema.get("additionalProperties") or {}
    for alternative in _alternatives(inner):
        if "$ref" in alternative:
            referenced: Mapping[str, Any] = _schema(model)["$defs"][alternative["$ref"].rpartition("/")[2]]
            return referenced
    return inner if isinstance(inner, dict) else {}


def _alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        yield from schema.get("anyOf", [])
        yield from schema.get("allOf", [])


@cache
def _schema(model: Model) -> dict[str, Any]:
    return model.model_json_schema()
