"""Whatever goes wrong under the API is a problem in one form, which programs can read."""

from __future__ import annotations

import uuid
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
    """A program that may do everything, and is told what a program is told."""
    token = ApiToken.objects.issue(User.objects.create_superuser("scheduler"), "scheduler", [READ, RUN])
    return Client(raise_request_exception=False, headers={"authorization": f"Bearer {token}"})


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    found: dict[str, Any] = answer.json()
    assert (found["status"], found["code"]) == (status, code)
    return found


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v1/series/", "/api/v1/runs/7/log", "/api/v2/series"]
)
def test_a_path_that_is_not_there_is_not_found(client: Client, path: str) -> None:
    assert path in problem(client.get(path), 404, "not_found")["detail"]
    problem(client.post(path, b"{}", content_type=JSON), 404, "not_found")


def test_a_run_that_is_not_there_is_not_found(client: Client) -> None:
    problem(client.get(f"/api/v1/runs/{uuid.uuid4()}"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/v1/series", "GET"),
        ("PUT", "/api/v1/reports", "POST"),
        ("PATCH", "/api/v1/runs", "GET, POST"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_answered_with_those_that_it_takes(
    client: Client, method: str, path: str, allowed: str
) -> None:
    answer = client.generic(method, path)
    assert answer["Allow"] == allowed
    assert problem(answer, 405, "method_not_allowed")["detail"].endswith(f"{method}; it takes {allowed}")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 10_000])
def test_what_is_no_json_is_malformed(client: Client, body: bytes) -> None:
    problem(client.post("/api/v1/holds", body, content_type=JSON), 400, "malformed")


def test_json_that_says_something_else_names_the_field(client: Client) -> None:
    answer = client.post("/api/v1/holds", b"{}", content_type=JSON)
    told = problem(answer, 422, "invalid")
    assert told["detail"].startswith("kind: ")
    assert told["errors"][0]["loc"] == ["body", "kind"]
    told = problem(client.get("/api/v1/forecasts?level=7"), 422, "invalid")
    assert told["detail"].startswith("level: ")
    assert told["errors"][0]["loc"] == ["query", "level"]


def test_a_body_that_is_too_large_is_not_read(client: Client) -> None:
    body = b'{"why": "' + b"x" * 3_000_000 + b'"}'
    told = problem(client.post("/api/v1/holds", body, content_type=JSON), 413, "too_large")
    assert told["detail"] == "expected a body of at most 2,621,440 bytes"


def test_more_parameters_than_anybody_needs_are_not_read(client: Client) -> None:
    query = "&".join(f"role{number}=here" for number in range(1_001))
    told = problem(client.get(f"/api/v1/forecasts?application=circle&{query}"), 400, "malformed")
    assert told["detail"] == "expected at most 1,000 parameters"


def test_a_host_that_is_not_ours_is_refused(client: Client) -> None:
    problem(client.get("/api/v1/series", headers={"host": "elsewhere.example.org"}), 400, "malformed")


def test_an_error_of_ours_is_a_problem_without_a_word_of_what_it_was(circle: Series, client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_series RENAME COLUMN parameters TO lost")
    told = problem(client.get("/api/v1/series"), 500, "our_error")
    assert "parameters" not in told["detail"]


def test_people_get_a_page(client: Client) -> None:
    answer = client.get("/nothing")
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert client.get("/", headers={"host": "elsewhere.example.org"})["Content-Type"].startswith("text/html")


def test_the_description_says_of_every_operation_how_errors_look(client: Client) -> None:
    described = client.get("/api/v1/openapi.json").json()
    problems = {"$ref": "#/components/schemas/Problem"}
    for operations in described["paths"].values():
        for operation in operations.values():
            told = operation["responses"]["default"]["content"]
            assert told["application/problem+json"]["schema"] == problems
    body = client.get("/api/v1/nothing").json()
    assert set(described["components"]["schemas"]["Problem"]["required"]) == body.keys()
