"""The examples of the OpenAPI document are true: every one is accepted in the grid of the examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests.monitor.web.api.example_grid import example_grid
from tests.monitor.web.api.openapi_document import openapi_document

DOCUMENT = openapi_document()


@pytest.fixture
def client(db: None) -> Client:
    return Client(headers={"authorization": f"Bearer {example_grid()}"})


def with_examples() -> Iterator[tuple[str, str, dict[str, str], Any]]:
    """Yield method, path, query and body of each operation whose required parts all have an example."""
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            parameters = operation["parameters"]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            is_of_other_series = "ping" in path  # needs a series that another system reports
            has_all = not is_of_other_series and all(
                "example" in each for each in parameters if each["required"]
            )
            if has_all and ("requestBody" not in operation or "example" in body):
                filled = path
                for each in parameters:
                    if each["in"] == "path":
                        filled = filled.replace(f"{{{each['name']}}}", each["example"])
                query = {
                    each["name"]: each["example"]
                    for each in parameters
                    if each["in"] == "query" and "example" in each
                }
                yield method, filled, query, body.get("example")


EXAMPLES = list(with_examples())
HOLD = {"kind": "site", "name": "ncsa", "mode": "pause", "reason": "new disks"}


def test_every_example_is_accepted(client: Client) -> None:
    for method, path, query, body in EXAMPLES:
        with transaction.atomic():
            if path.endswith("/resume"):
                send(client, "post", "/api/v1/holds", HOLD)
            answer = client.get(path, query) if method == "get" else send(client, method, path, body)
            transaction.set_rollback(True)
        is_in_use = method == "delete" and answer.status_code == 409  # the example is a part of the grid
        assert answer.status_code < 300 or is_in_use, f"{method} {path} {query} {body}: {answer.content!r}"


def test_most_operations_have_examples() -> None:
    operations = sum(len(each) for each in DOCUMENT["paths"].values())
    assert len(EXAMPLES) > operations / 2


def send(client: Client, method: str, path: str, body: Any) -> Any:
    return getattr(client, method)(path, body if body is not None else {}, content_type="application/json")
