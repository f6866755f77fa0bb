"""Every error of the API is a problem (RFC 9457)."""

from __future__ import annotations

import gc
import json
import logging
import uuid
import weakref
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from monitor.models import ApiToken, Series
from monitor.models.token import READ, RUN

JSON = "application/json"


@pytest.fixture
def client(db: None) -> Client:
    """A client with all permissions."""
    token = ApiToken.objects.issue(User.objects.create_superuser("scheduler"), "scheduler", [READ, RUN])
    return Client(raise_request_exception=False, headers={"authorization": f"Bearer {token}"})


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    shown: dict[str, Any] = answer.json()
    assert (shown["status"], shown["code"]) == (status, code)
    return shown


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v1/series/", "/api/v1/runs/7/log", "/api/v2/series"]
)
def test_an_unknown_path_is_not_found(client: Client, path: str) -> None:
    assert path in problem(client.get(path), 404, "not_found")["detail"]
    problem(client.post(path, b"{}", content_type=JSON), 404, "not_found")


def test_an_unknown_run_is_not_found(client: Client) -> None:
    problem(client.get(f"/api/v1/runs/{uuid.uuid4()}"), 404, "unknown_run")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/v1/series", "GET, HEAD, OPTIONS"),
        ("PUT", "/api/v1/reports", "OPTIONS, POST"),
        ("PATCH", "/api/v1/runs", "GET, HEAD, OPTIONS, POST"),
    ],
)
def test_a_wrong_method_is_answered_with_the_allowed_ones(
    client: Client, method: str, path: str, allowed: str
) -> None:
    answer = client.generic(method, path)
    assert answer["Allow"] == allowed
    assert problem(answer, 405, "method_not_allowed")["detail"].endswith(f"{method}; it takes {allowed}")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 10_000])
def test_invalid_json_is_malformed(client: Client, body: bytes) -> None:
    problem(client.post("/api/v1/holds", body, content_type=JSON), 400, "malformed")


def test_an_invalid_field_is_named(client: Client) -> None:
    answer = client.post("/api/v1/holds", b"{}", content_type=JSON)
    problem_body = problem(answer, 422, "invalid")
    assert problem_body["detail"].startswith("kind: ")
    assert problem_body["errors"][0]["loc"] == ["body", "kind"]
    problem_body = problem(client.get("/api/v1/forecasts?level=7"), 422, "invalid")
    assert problem_body["detail"].startswith("level: ")
    assert problem_body["errors"][0]["loc"] == ["query", "level"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/api/v1/forecasts?at=soon", b""), ("POST", "/api/v1/holds", b'{"until": "soon"}')],
)
def test_a_refused_request_is_released(
    client: Client, caplog: pytest.LogCaptureFixture, method: str, path: str, body: bytes
) -> None:
    caplog.set_level(logging.ERROR, logger="django.request")  # a record holds the request
    answer = client.generic(method, path, body, content_type=JSON)
    assert "expected a time with its zone" in problem(answer, 422, "invalid")["detail"]
    request = weakref.ref(answer.wsgi_request)
    del answer
    gc.collect()
    assert request() is None


def test_an_oversized_body_is_refused(client: Client) -> None:
    body = b'{"why": "' + b"x" * 3_000_000 + b'"}'
    problem_body = problem(client.post("/api/v1/holds", body, content_type=JSON), 413, "too_large")
    assert problem_body["detail"] == "expected a body of at most 2,621,440 bytes"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({f"k{number:06}": 1 for number in range(120_000)}, "20,000 values in the body"),
        (dict.fromkeys(map(str, range(1_001)), 1), "1,000 keys in an object, got 1,001"),
        ([1] * 700_000, "20,000 values in the body"),
        ({"a": [{"a": 1}] * 20_001}, "20,000 values in the body"),
    ],
    ids=["keys", "more keys than permitted", "values", "objects"],
)
def test_a_body_of_too_many_items_is_refused_before_any_is_named(
    client: Client, value: Any, expected: str
) -> None:
    """A stranger's 238,000 unknown keys were answered with 32 MB."""
    for path in ("/api/v1/reporters/enrol", "/api/v1/holds", "/api/v1/forecasts/rank"):
        answer = client.post(path, json.dumps(value), content_type=JSON)
        assert expected in problem(answer, 413, "too_large")["detail"]
        assert len(answer.content) < 500


def test_commas_within_texts_are_no_items(client: Client) -> None:
    body = json.dumps({"reason": '"\\,' * 30_000})
    assert problem(client.post("/api/v1/holds", body, content_type=JSON), 422, "invalid")


def test_only_the_first_of_many_errors_are_listed_and_their_texts_are_clipped(client: Client) -> None:
    keys = {f"k{number}" + "x" * 1000: 1 for number in range(900)}
    answer = client.post("/api/v1/reporters/enrol", json.dumps(keys), content_type=JSON)
    shown = problem(answer, 422, "invalid")
    assert len(shown["errors"]) == 20
    assert shown["detail"].endswith("; and 884 more")  # four fields lack, too
    assert len(answer.content) < 10_000


def test_too_many_parameters_are_refused(client: Client) -> None:
    query = "&".join(f"role{number}=here" for number in range(1_001))
    problem_body = problem(client.get(f"/api/v1/forecasts?application=circle&{query}"), 400, "malformed")
    assert problem_body["detail"] == "expected at most 1,000 parameters"


def test_an_unknown_host_is_refused(client: Client) -> None:
    problem(client.get("/api/v1/series", headers={"host": "elsewhere.example.org"}), 400, "malformed")


def test_an_internal_error_reveals_no_details(circle: Series, client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_series RENAME COLUMN parameters TO lost")
    problem_body = problem(client.get("/api/v1/series"), 500, "our_error")
    assert "parameters" not in problem_body["detail"]


def test_browsers_get_a_page(client: Client) -> None:
    answer = client.get("/nothing")
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert client.get("/", headers={"host": "elsewhere.example.org"})["Content-Type"].startswith("text/html")


def test_every_operation_declares_the_problem(client: Client) -> None:
    described = client.get("/api/v1/openapi.json").json()
    problems = {"$ref": "#/components/schemas/Problem"}
    for operations in described["paths"].values():
        for operation in operations.values():
            declared = operation["responses"]["500"]["content"]
            assert declared["application/problem+json"]["schema"] == problems
    body = client.get("/api/v1/nothing").json()
    assert set(described["components"]["schemas"]["Problem"]["required"]) == body.keys()
