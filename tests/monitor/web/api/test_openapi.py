"""The OpenAPI document is a contract with programs: paths, parameters, operation ids and schemas."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from django.conf import LazySettings
from pydantic import BaseModel

from monitor.models.token import SCOPES
from monitor.web.api import api
from monitor.web.api.http.openapi import undescribed
from tests.monitor.web.api.openapi_document import openapi_document

CONTRACT = Path(__file__).parent / "data" / "openapi.json"
REPORTING = ("ping_series", "ping_series_signal")  # the sender needs the scope report
TEXTS = ("description", "summary")


def test_the_openapi_document_is_that_of_the_contract() -> None:
    """Only descriptions and summaries may change.

    To accept another change, run with ``GRIDCAST_ACCEPT_OPENAPI=1``.
    """
    actual = without_texts(openapi_document())
    if os.environ.get("GRIDCAST_ACCEPT_OPENAPI"):
        CONTRACT.write_text(json.dumps(actual, indent=1, sort_keys=True) + "\n")
    differences = list(compared(json.loads(CONTRACT.read_text()), actual))
    assert not differences, (
        "the API changed for programs:\n  " + "\n  ".join(differences[:20]) + "\nIf the change is deliberate,"
        " accept it: GRIDCAST_ACCEPT_OPENAPI=1 pytest tests/monitor/web/api/test_openapi.py, and commit"
        f" {CONTRACT.name}."
    )


def test_the_document_names_its_server(settings: LazySettings) -> None:
    """Relative to the document, unless the public URL is configured."""
    assert api.get_openapi_schema()["servers"] == [{"url": "/"}]
    settings.GRIDCAST_URL = "https://grid.example.org"
    assert api.get_openapi_schema()["servers"] == [{"url": "https://grid.example.org"}]


def test_every_operation_parameter_and_field_is_described() -> None:
    """``monitor.web.api.http.vocabulary`` describes a name once for all operations."""
    assert list(undescribed(openapi_document())) == []


def test_every_object_with_fields_has_a_name() -> None:
    """A generated client names the class of another one by its operation and media type."""
    contents = [
        (each["operationId"], media_type, content.get("schema", {}))
        for _, each in operations()
        for part in (each.get("requestBody", {}), *each["responses"].values())
        for media_type, content in part.get("content", {}).items()
    ]
    assert [(key, media_type) for key, media_type, schema in contents if "properties" in schema] == []
    assert openapi_document()["components"]["schemas"]["PingIn"]["title"] == "PingIn"


def test_every_operation_has_an_id_of_a_verb_and_a_noun() -> None:
    ids = [operation["operationId"] for _, operation in operations()]
    assert [key for key in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)+", key)] == []
    assert [key for key, count in Counter(ids).items() if count > 1] == []


def test_every_operation_that_changes_something_names_its_scope() -> None:
    """Except those that agents sign, pings by a key in the path, and what every token may do to itself."""
    changing = [
        operation
        for method, operation in operations()
        if method != "get" and not operation["operationId"].endswith("_by_key")
        if operation["operationId"] != "rotate_own_token"
    ]
    assert [
        operation["operationId"]
        for operation in changing
        if "agents of reporters" not in operation["tags"]
        and "security" in operation
        and not any({*scopes} & {*SCOPES} for way in operation["security"] for scopes in way.values())
    ] == []
    of_own_scope = {
        operation["operationId"]
        for operation in changing
        for way in operation.get("security", ())
        if ["read"] in way.values()
    }
    assert of_own_scope - {"rank_forecasts", "exchange_state", "deliver_records", *REPORTING} == set()


def test_no_two_schemas_have_the_same_name() -> None:
    """Ninja silently keeps one of them."""
    models = [
        model
        for router in api._get_bound_routers()
        for path in router.path_operations.values()
        for operation in path.operations
        for model in (*operation.models, *operation.response_models.values())
        if isinstance(model, type) and issubclass(model, BaseModel)
    ]
    seen: dict[str, type[BaseModel]] = {}
    while models:
        for field in models.pop().model_fields.values():
            for inner in schemas_in(field.annotation):
                if seen.setdefault(inner.__name__, inner) is inner:
                    continue
                pytest.fail(f"{inner.__module__} and {seen[inner.__name__].__module__}: {inner.__name__}")


def schemas_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from schemas_in(inner)


def operations() -> Iterator[tuple[str, Any]]:
    for path in openapi_document()["paths"].values():
        yield from path.items()


def test_a_difference_names_its_path_and_both_values() -> None:
    expected = {"paths": {"/a": {"get": 1}, "/b": 2}}
    actual = {"paths": {"/a": {"get": 3}, "/c": 2}}
    assert list(compared(expected, actual)) == [
        "/paths//a/get: 1 became 3",
        "/paths//b: removed",
        "/paths//c: added",
    ]


def test_processes_that_serve_no_requests_do_not_import_the_api() -> None:
    program = (
        "import sys, django; django.setup(); import monitor.tasks\n"
        "print({'ninja', 'pydantic'} & {*sys.modules})"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "monitor.settings"}
    printed = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
    assert printed.strip() == "set()"


def without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_texts(inner)
            for key, inner in value.items()
            if not (key in TEXTS and isinstance(inner, str))
        }
    return [without_texts(inner) for inner in value] if isinstance(value, list) else value


def compared(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Describe each difference by its path in the document."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            if key not in actual:
                yield f"{path}/{key}: removed"
            elif key not in expected:
                yield f"{path}/{key}: added"
            else:
                yield from compared(expected[key], actual[key], f"{path}/{key}")
    elif expected != actual:
        yield f"{path}: {json.dumps(expected):.200} became {json.dumps(actual):.200}"
