"""A body that its schema permits is not too large, or the document of the API has the smaller bound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.web.api.http.openapi import MOST_VALUES, most_values
from monitor.web.api.http.strict import MOST_ITEMS, MOST_KEYS
from tests.monitor.web.api.openapi_document import openapi_document

pytestmark = pytest.mark.django_db
JSON = "application/json"
SCHEMAS = openapi_document()["components"]["schemas"]
# Their bodies are read as a stream, with limits of their own, which their description states.
STREAMED = {"/api/v1/reports", "/api/v1/reporters/{reporter}/exchange"}


def bodies() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, operations in openapi_document()["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {})
            if JSON in body.get("content", {}) and path not in STREAMED:
                yield method, path, body


BODIES = {f"{method.upper()} {path}": (method, path, body) for method, path, body in bodies()}


def largest(schema: Mapping[str, Any]) -> Any:
    """Return a value of *schema* whose arrays and objects are as large as it permits, if it says so."""
    if "$ref" in schema:
        return largest(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return largest(max(schema["anyOf"], key=lambda each: most_values(each, SCHEMAS)))
    if schema.get("type") == "array":
        return [largest(schema["items"])] * schema.get("maxItems", 1)
    if schema.get("type") == "object":
        values = {name: largest(each) for name, each in schema.get("properties", {}).items()}
        others = schema.get("additionalProperties")
        return values | ({f"k{n}": largest(others) for n in range(MOST_KEYS)} if others else {})
    return {"string": "a", "boolean": True}.get(schema.get("type", ""), 1)


def answered(method: str, path: str, value: Any) -> Any:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    address = path.replace("{kind}", "series").replace("{", "").replace("}", "")
    return client.generic(method.upper(), address, json.dumps(value), JSON)


@pytest.mark.parametrize("operation", BODIES)
def test_the_largest_body_of_a_schema_is_read_or_the_document_bounds_it(operation: str) -> None:
    method, path, body = BODIES[operation]
    schema = body["content"][JSON]["schema"]
    if most_values(schema, SCHEMAS) <= MOST_ITEMS:
        assert MOST_VALUES not in body
        assert answered(method, path, largest(schema)).status_code != 413
    else:
        assert body.get(MOST_VALUES) == MOST_ITEMS
        assert f"{MOST_ITEMS:,} values" in body["description"]


def objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield *schema* and all schemas within it."""
    if isinstance(schema, dict):
        yield schema
        for key, each in schema.items():
            yield from objects(SCHEMAS[each.rpartition("/")[2]] if key == "$ref" else each)
    elif isinstance(schema, list):
        for each in schema:
            yield from objects(each)


@pytest.mark.parametrize("operation", BODIES)
def test_an_object_of_any_keys_says_how_many_it_may_have(operation: str) -> None:
    schema = BODIES[operation][2]["content"][JSON]["schema"]
    unbounded = [each for each in objects(schema) if each.get("additionalProperties")]
    assert [each for each in unbounded if each.get("maxProperties", MOST_KEYS + 1) > MOST_KEYS] == []


def test_a_ranking_of_more_values_than_the_document_states_names_that_limit() -> None:
    resources = [f"r{number}" for number in range(20)]
    question = {
        "application": "circle",
        "candidates": [{"key": str(number), "resources": resources} for number in range(1_000)],
    }
    answer = answered("post", "/api/v1/forecasts/rank", question)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert "20,000 values in the body, of all its objects and arrays together" in answer.json()["detail"]
