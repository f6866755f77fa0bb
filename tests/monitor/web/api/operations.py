"""The operations of the OpenAPI document, each with values for what it requires."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from django.test import Client

from monitor.web.api.http.json_schema import Schemas
from tests.monitor.web.api.openapi_document import openapi_document

DOCUMENT = openapi_document()
COMPONENTS = DOCUMENT["components"]["schemas"]
JSON = "application/json"
AGENTS = "agents of reporters"  # they sign their requests, and have tests of their own


@dataclass(frozen=True)
class ApiOperation:
    """An operation, and a request of it. *example* is a body, of valid types; None if it takes none."""

    method: str
    route: str
    path: str
    query: dict[str, str]
    example: Any
    definition: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.route}"

    @property
    def takes_json(self) -> bool:
        return JSON in self.definition.get("requestBody", {}).get("content", {})

    @property
    def parameters(self) -> list[dict[str, Any]]:
        return [each for each in self.definition["parameters"] if each["in"] == "query"]

    def times_in_body(self) -> Iterator[tuple[str, ...]]:
        """Yield the place of each time in the body; those within lists are left out."""
        if self.takes_json:
            schema = self.definition["requestBody"]["content"][JSON]["schema"]
            yield from _times(schema, ())

    def changed_body(self, place: tuple[str, ...], value: Any) -> bytes:
        """Return the example of the body with *value* at *place*."""
        body = deepcopy(self.example) if isinstance(self.example, dict) else {}
        inner = body
        for key in place[:-1]:
            inner = inner.setdefault(key, {})
        inner[place[-1]] = value
        return json.dumps(body).encode()

    def send(
        self,
        client: Client,
        query: str = "",
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """Return the answer to the request; *query* takes the place of the required parameters."""
        if body is None and self.takes_json:
            body = json.dumps({} if self.example is None else self.example).encode()
        parameters = query or "&".join(f"{name}={value}" for name, value in self.query.items())
        path = f"{self.path}?{parameters}" if parameters else self.path
        return client.generic(self.method, path, body or b"", content_type=JSON, headers=headers or {})


def operations() -> Iterator[ApiOperation]:
    schemas = Schemas(COMPONENTS)
    for route, methods in DOCUMENT["paths"].items():
        for method, definition in methods.items():
            path, query = route, {}
            for each in definition["parameters"]:
                value = each.get("example", schemas.example(each["schema"]))
                if each["in"] == "path":
                    path = path.replace(f"{{{each['name']}}}", str(value))
                elif each["required"]:
                    query[each["name"]] = str(value)
            body = definition.get("requestBody", {}).get("content", {}).get(JSON, {"example": None})
            example = body["example"] if "example" in body else schemas.example(body["schema"])
            yield ApiOperation(method.upper(), route, path, query, example, definition)


def alternatives(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a value of *schema* may be, each without references."""
    if "$ref" in schema:
        schema = COMPONENTS[schema["$ref"].rpartition("/")[2]]
    several = [each for name in ("anyOf", "oneOf", "allOf") for each in schema.get(name, ())]
    for each in several:
        yield from alternatives(each)
    if not several:
        yield schema


def is_time(schema: dict[str, Any]) -> bool:
    return any(each.get("format") == "date-time" for each in alternatives(schema))


def _times(schema: dict[str, Any], place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for each in alternatives(schema):
        for name, value in each.get("properties", {}).items():
            if is_time(value):
                yield (*place, name)
            yield from _times(value, (*place, name))
