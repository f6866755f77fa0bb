"""The OpenAPI document: ninja's, with descriptions of all names, and error codes and scopes of operations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings

from monitor.models.token import READ
from monitor.web.api.http.declare import KEY, declare
from monitor.web.api.http.examples import EXAMPLES
from monitor.web.api.http.lists import SPARSE_JSON
from monitor.web.api.http.strict import MOST_ITEMS, MOST_KEYS
from monitor.web.api.http.vocabulary import DESCRIPTIONS

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457; some problems have further fields.",
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "request"],
    "properties": {
        "type": {"type": "string", "description": "Always `about:blank`."},
        "title": {"type": "string", "description": "The reason phrase of the status."},
        "status": {"type": "integer", "description": "The status of the answer."},
        "code": {"type": "string", "description": "A stable identifier, for programs."},
        "detail": {"type": "string", "description": "An explanation for people."},
        "request": {"type": "string", "description": "The id of the request, for the administrators."},
    },
}
MOST_VALUES = "x-most-values"  # of a body whose schema permits more
_PROBLEM_TYPE = "application/problem+json"
_ANY: Mapping[int, tuple[str, ...]] = {
    400: ("malformed",),
    414: ("too_large",),
    422: ("invalid",),
    429: ("too_many_requests",),
    431: ("too_large",),
    500: ("our_error",),
    503: ("depot_away", "too_slow"),
}
_AUTHENTICATED: Mapping[int, tuple[str, ...]] = {401: ("not_authenticated",), 403: ("not_allowed",)}
_WITH_BODY: Mapping[int, tuple[str, ...]] = {413: ("too_large",), 415: ("unsupported",)}


def complete(document: dict[str, Any]) -> None:
    """Add what ninja's *document* lacks."""
    document["servers"] = [{"url": settings.GRIDCAST_URL or "/"}]
    schemas = document["components"]["schemas"]
    schemas["Problem"] = PROBLEM
    for operations in document["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["requestBody"] = _with_names(operation["requestBody"], schemas)
    for schema in schemas.values():
        _describe_fields(schema)
    for operations in document["paths"].values():
        for method, operation in operations.items():
            _complete_operation(method, operation)
            if "requestBody" in operation:
                _state_bounds(operation["requestBody"], schemas)


def _with_names(body: Mapping[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return *body* with the objects that it declares in place moved to *schemas*.

    Generators name a class by its schema. *body* belongs to the operation, which further documents show.
    """
    contents = dict(body["content"])
    for media_type, content in contents.items():
        schema = content["schema"]
        if "properties" in schema:
            contents[media_type] = {**content, "schema": {"$ref": f"#/components/schemas/{schema['title']}"}}
            if schemas.setdefault(schema["title"], schema) != schema:
                raise ValueError(f"two schemas are named {schema['title']}")
    return {**body, "content": contents}


def _complete_operation(method: str, operation: dict[str, Any]) -> None:
    declared = operation.pop(KEY, None) or declare()[KEY]
    for parameter in operation["parameters"]:
        _complete_parameter(parameter)
    if declared["example"] is not None:
        for content in operation["requestBody"]["content"].values():
            content["example"] = declared["example"]
    if "security" in operation:
        scope = READ if declared["scope"] is None else declared["scope"]
        scopes = [scope] if scope else []
        operation["security"] = [dict.fromkeys(way, scopes) for way in operation["security"]]
    _add_problems(operation, declared["errors"])
    if method == "get" and not declared["is_streamed"]:
        _add_conditional(operation)


def _state_bounds(body: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """State the bounds that ``strict`` has for all bodies, where those of the fields of *body* permit more.

    A body with a description of its own is not read by ``strict``.
    """
    schema = body["content"].get("application/json", {}).get("schema")
    if schema is None or "description" in body:
        return
    _state_keys(schema, schemas)
    if most_values(schema, schemas) > MOST_ITEMS:
        body["description"] = f"At most {MOST_ITEMS:,} values, of all its objects and arrays together."
        body[MOST_VALUES] = MOST_ITEMS


def _state_keys(schema: Any, schemas: Mapping[str, Any]) -> None:
    for part in _parts(schema, schemas):
        _state_keys(part, schemas)
    if isinstance(schema, dict) and schema.get("additionalProperties"):
        schema.setdefault("maxProperties", MOST_KEYS)


def _parts(schema: Any, schemas: Mapping[str, Any]) -> Iterator[Any]:
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schemas[schema["$ref"].rpartition("/")[2]]
    yield from schema.get("anyOf", ())
    yield from schema.get("properties", {}).values()
    yield from (schema[key] for key in ("items", "additionalProperties") if key in schema)


def most_values(schema: Any, schemas: Mapping[str, Any]) -> float:
    """Return how many values the objects and arrays of *schema* may have together."""
    if not isinstance(schema, dict) or not schema:
        return math.inf  # any value
    if "$ref" in schema:
        return most_values(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return max(most_values(each, schemas) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return float(schema.get("maxItems", math.inf)) * (1 + most_values(schema.get("items"), schemas))
    if schema.get("type") != "object":
        return 0
    values = float(sum(1 + most_values(each, schemas) for each in schema.get("properties", {}).values()))
    if others := schema.get("additionalProperties"):
        values += schema.get("maxProperties", math.inf) * (1 + most_values(others, schemas))
    return values


def _complete_parameter(parameter: dict[str, Any]) -> None:
    name = parameter["name"]
    if examples := parameter.pop("examples", None):  # a list, as of a schema: of a parameter, it is a map
        parameter["example"] = examples[0]
    if name in DESCRIPTIONS:
        parameter.setdefault("description", DESCRIPTIONS[name])
    if name in EXAMPLES:
        parameter.setdefault("example", EXAMPLES[name])


def _add_problems(operation: dict[str, Any], own: Mapping[int, tuple[str, ...]]) -> None:
    """Declare each status of an error with its codes: those of the operation, and those of its kind."""
    kinds = [_ANY, own]
    if "security" in operation:
        kinds.append(_AUTHENTICATED)
    if "requestBody" in operation:
        kinds.append(_WITH_BODY)
    if {"start", "end"} <= {parameter["name"] for parameter in operation["parameters"]}:
        kinds.append({422: ("empty_window",)})
    for status in sorted({status for kind in kinds for status in kind}):
        codes = sorted({code for kind in kinds for code in kind.get(status, ())})
        operation["responses"][status] = {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(f'`{code}`' for code in codes)}",
            "content": {_PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            "x-codes": codes,
        }


def _add_conditional(operation: dict[str, Any]) -> None:
    operation["responses"][304] = {
        "description": "The client has the answer: `If-None-Match` names its `ETag`"
    }
    contents = operation["responses"].get(200, {}).get("content", {})
    has_fields = any(parameter["name"] == "fields" for parameter in operation["parameters"])
    if has_fields and "application/json" in contents:
        contents[SPARSE_JSON] = {
            "schema": {
                "type": "object",
                "description": "With `fields`: the answer, without the other fields.",
            }
        }


def _describe_fields(schema: dict[str, Any]) -> None:
    for name, field in schema.get("properties", {}).items():
        if name in DESCRIPTIONS:
            field.setdefault("description", DESCRIPTIONS[name])


def undescribed(document: dict[str, Any]) -> Iterator[str]:
    """Yield each operation, parameter and field of *document* without a description."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method.upper()} {path}"
            if not operation.get("summary"):
                yield where
            for parameter in operation["parameters"]:
                if not parameter.get("description"):
                    yield f"{where}: parameter {parameter['name']}"
    for name, schema in document["components"]["schemas"].items():
        for field, details in schema.get("properties", {}).items():
            if not details.get("description"):
                yield f"{name}.{field}"
