"""The documentation of the API has every operation, with examples that its schemas accept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitor.web.api.http.documentation import DocumentedOperation, documented_operations, matching
from monitor.web.api.http.json_schema import Schemas
from tests.monitor.web.api.openapi_document import openapi_document

DOCUMENT = openapi_document()
OPERATIONS = {each.id: each for each in documented_operations(DOCUMENT)}
NODE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 9, "description": "Its name."},
        "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "state": {"anyOf": [{"enum": ["up", "down"], "type": "string"}, {"type": "null"}]},
        "by_site": {"type": "object", "additionalProperties": {"type": "number", "default": 2.5}},
    },
}
NODES = Schemas({"Node": NODE})
TO_NODE = {"$ref": "#/components/schemas/Node"}


def test_every_operation_is_documented() -> None:
    assert OPERATIONS.keys() == {
        operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()
    }
    assert all(each.answers and each.errors for each in OPERATIONS.values())


def test_no_example_of_a_parameter_is_nothing() -> None:
    """The forms of the pages would send it."""
    examples = {each.example for operation in OPERATIONS.values() for each in operation.parameters}
    assert not examples & {"None", "null", "[]", "{}"}


def test_examples_of_bodies_and_answers_are_valid() -> None:
    """An example that names no values has texts where a format is described in words only."""
    wrong = []
    for key, operation in OPERATIONS.items():
        for content in (operation.body, *operation.answers):
            if content and content.fields:
                errors = violations(operation, content.status, json.loads(content.example))
                wrong += [f"{key} {content.status}: {error}" for error in errors]
    assert wrong == []


def violations(operation: DocumentedOperation, status: int | None, example: Any) -> list[str]:
    from jsonschema import Draft202012Validator  # takes a second: not when tests are collected

    declared = DOCUMENT["paths"][operation.path][operation.method.lower()]
    part = declared["responses"][str(status)] if status else declared["requestBody"]
    schema = next(iter(part["content"].values()))["schema"] | {"components": DOCUMENT["components"]}
    return [error.message for error in Draft202012Validator(schema).iter_errors(example)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (TO_NODE, "object"),
        ({"type": "array", "items": {"type": "string", "format": "date-time"}}, "list of time (RFC 3339)"),
        (NODE["properties"]["state"], "`up` or `down` or null"),  # type: ignore[index]
        (NODE["properties"]["by_site"], "map of number"),  # type: ignore[index]
        ({}, "any"),
    ],
)
def test_a_type_in_words(schema: dict[str, Any], words: str) -> None:
    assert NODES.type_words(schema) == words


def test_a_schema_within_itself_is_shown_once() -> None:
    name, children, *_ = NODES.fields(TO_NODE)
    assert (name.is_required, name.limits, name.description) == (True, "up to 9 characters", "Its name.")
    assert (children.type, children.fields) == ("list of object", ())
    assert NODES.example(TO_NODE)["by_site"] == {"name": 2.5}


def test_a_search_finds_operations_that_contain_every_word() -> None:
    found = [each.id for each in matching([*OPERATIONS.values()], "POST rank")]
    assert found == ["rank_forecasts"]


def test_a_command_has_the_body_and_names_no_token() -> None:
    command = OPERATIONS["rank_forecasts"].curl
    assert command.startswith(
        'curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" "$URL/'
    )
    assert OPERATIONS["exchange_state"].curl == ""
    assert not OPERATIONS["exchange_state"].is_tryable
