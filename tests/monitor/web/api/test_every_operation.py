"""What holds for every operation of the OpenAPI document, and so for the next one that is added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from monitor.models import AuditEvent, Forecast, Webhook
from tests.conftest import empty_tables
from tests.monitor.web.api.example_grid import SERIES, example_grid
from tests.monitor.web.api.operations import AGENTS, ApiOperation, is_time, operations

ALL = [each for each in operations() if AGENTS not in each.definition["tags"]]
NOT_FOUND = 404
NAIVE = "2026-03-01T12:00:00"
PING_KEYS = "/api/v1/series/nightly-backup/ping-keys"
HEADERS = ("X-Request-ID", "Cache-Control", "RateLimit", "RateLimit-Policy")


@pytest.fixture(scope="module")
def token(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """One grid for all tests, of which each rolls back what it changed."""
    with django_db_blocker.unblock():
        yield example_grid()
        empty_tables()


@pytest.fixture
def client(token: str, db: None) -> Client:
    return Client(headers={"authorization": f"Bearer {token}"})


def undone(operation: ApiOperation, client: Client, **options: Any) -> Any:
    """Return the answer to a request; what it changed is rolled back."""
    with transaction.atomic():
        answer = operation.send(client, **options)
        transaction.set_rollback(True)
    return answer


def accepted(answers: Iterator[tuple[str, Any]]) -> list[str]:
    """Return in words which of *answers* is not 422, or does not name what is wrong with its request.

    An operation whose path names nothing of the example says so first.
    """
    judged = [(what, answer) for what, answer in answers if answer.status_code != NOT_FOUND]
    assert judged
    return [
        f"{what}: {answer.status_code} {answer.content[:300]!r}"
        for what, answer in judged
        if answer.status_code != 422 or what.rpartition(" ")[2] not in answer.content.decode()
    ]


def test_no_operation_takes_an_unknown_parameter(client: Client) -> None:
    answers = ((f"{each} unknown", undone(each, client, query="unknown=1")) for each in ALL if not each.query)
    assert accepted(answers) == []


def test_no_operation_takes_a_parameter_twice(client: Client) -> None:
    answers = (
        (f"{each} {parameter['name']}", undone(each, client, query=f"{query}&{query}"))
        for each in ALL
        for parameter in each.parameters
        for query in [f"{parameter['name']}=1"]
    )
    assert accepted(answers) == []


def test_no_operation_takes_a_time_without_its_zone(client: Client) -> None:
    in_queries = (
        (f"{each} {parameter['name']}", undone(each, client, query=f"{parameter['name']}={NAIVE}"))
        for each in ALL
        for parameter in each.parameters
        if is_time(parameter["schema"])
    )
    in_bodies = (
        (f"{each} {place[-1]}", undone(each, client, body=each.changed_body(place, NAIVE)))
        for each in ALL
        for place in each.times_in_body()
    )
    assert accepted(in_queries) == []
    assert accepted(in_bodies) == []


def test_no_operation_takes_an_unknown_key(client: Client) -> None:
    answers = (
        (f"{each} unknown", undone(each, client, body=each.changed_body(("unknown",), 1)))
        for each in operations()
        if each.takes_json
        and each.definition["operationId"] not in {"exchange_state", "report_outcomes"}  # signed; a list
    )
    assert accepted(answers) == []


def test_no_operation_takes_a_key_twice(client: Client) -> None:
    for each in ALL:
        if each.takes_json:
            answer = undone(each, client, body=b'{"again": 1, "again": 2}')
            if answer.status_code != NOT_FOUND:
                assert answer.status_code in (400, 422), str(each)
                assert "again" in answer.json()["detail"], str(each)


def test_no_operation_takes_a_body_that_it_does_not_read(client: Client) -> None:
    """A filter that is sent as the body of a GET would otherwise select everything."""
    for each in ALL:
        if "requestBody" not in each.definition:
            answer = undone(each, client, body=b'{"state": "failed"}')
            if answer.status_code != NOT_FOUND:
                assert (answer.status_code, answer.json()["detail"]) == (422, "expected no body"), str(each)


def test_every_operation_says_how_to_authenticate_if_it_needs_it(client: Client) -> None:
    for each in ALL:
        if each.definition.get("security"):
            answer = undone(each, Client())
            assert (answer.status_code, answer.get("WWW-Authenticate")) == (401, 'Bearer realm="gridcast"'), (
                str(each)
            )


def test_every_answer_has_the_headers_of_all_answers(client: Client) -> None:
    for each in ALL:
        answer = undone(each, client)
        assert [name for name in HEADERS if name not in answer] == [], str(each)


def test_an_answer_that_has_not_changed_is_not_sent_again(client: Client) -> None:
    """Also if its window ends now, as it does by default."""
    sent = 0
    for each in ALL:
        answer = each.send(client) if each.method == "GET" else None
        if answer is None or answer.status_code != 200 or answer.streaming:
            continue
        sent += 1
        again = each.send(client, headers={"if-none-match": answer["ETag"]})
        if again.status_code == 200:  # an hour has just begun
            again = each.send(client, headers={"if-none-match": again["ETag"]})
        assert (again.status_code, again.content) == (304, b""), str(each)
    assert sent > 40


def test_every_list_has_the_same_envelope(client: Client) -> None:
    for each in ALL:
        if each.definition["operationId"].startswith("list_"):
            names = {parameter["name"] for parameter in each.parameters}
            assert {"limit", "cursor", "fields"} <= names, str(each)
            answer = each.send(client)
            if answer.status_code == 200:
                noun, following = answer.json()
                assert following == "next", str(each)
                assert isinstance(answer.json()[noun], list), str(each)


def test_what_was_created_is_found_at_its_location(client: Client) -> None:
    """Its answer has the same id, or the same name."""
    followed = {}
    define_reported(client)
    for each in ALL:
        if not {"201", "202"} & each.definition["responses"].keys():
            continue
        with transaction.atomic():
            answer = each.send(client)
            if answer.status_code in (201, 202):
                found = client.get(answer["Location"])
                followed[each.definition["operationId"]] = (answer.json(), found.json())
            transaction.set_rollback(True)
    assert {"create_token", "create_ping_key", "create_hold", "create_maintenance", "request_run"} <= {
        *followed
    }
    for name, (made, found) in followed.items():
        for key in ("id", "name"):
            assert key not in made or key not in found or made[key] == found[key], name
        assert "next" not in found or name == "request_runs", f"{name}: Location is a list"


def define_reported(client: Client) -> None:
    """Define the series of the examples that other systems report."""
    entry = {"suite": "main", "probe": "reported", "bindings": {"host": ["ncsa-login"]}}
    path = f"/api/v1/grid/series/{PING_KEYS.split('/')[4]}"
    assert client.put(path, json.dumps({"entry": entry}), content_type="application/json").status_code == 201


def test_deliveries_and_comments_are_found_at_their_locations(client: Client) -> None:
    hook = {"url": "https://hooks.example.org/", "events": ["run.ended"], "enabled": False}
    client.put("/api/v1/webhooks/ops", hook, content_type="application/json")
    pinged = client.post("/api/v1/webhooks/ops/ping")
    again = client.post(f"{pinged['Location']}/redeliver")
    assert Webhook.objects.get().deliveries.count() == 1
    for answer in (pinged, again):
        assert client.get(answer["Location"]).json()["id"] == answer.json()["id"]
    assert client.get(f"{pinged['Location']}0").json()["code"] == "unknown_delivery"


def test_a_change_is_shown_by_the_id_of_its_event(client: Client) -> None:
    client.post("/api/v1/tokens", {"name": "nightly"}, content_type="application/json")
    newest = AuditEvent.objects.latest("pk")
    shown = client.get(f"/api/v1/audit/{newest.pk}").json()
    assert (shown["id"], shown["action"]) == (newest.pk, newest.action)
    assert client.get(f"/api/v1/audit/{newest.pk + 1}").json()["code"] == "unknown_event"


def test_a_forecast_is_shown_as_it_was_issued_with_the_value_that_came(client: Client) -> None:
    answer = client.get("/api/v1/forecasts", {"series": SERIES}).json()
    path = f"/api/v1/forecasts/{answer['id']}"
    stored = client.get(path).json()
    assert {key: stored[key] for key in ("series", "metric", "mean", "median", "n", "issued_at")} == {
        key: answer[key] for key in ("series", "metric", "mean", "median", "n", "issued_at")
    }
    assert (stored["actual"], stored["actual_at"]) == (None, None)
    Forecast.objects.filter(pk=answer["id"]).update(truth=12.5, truth_time=stored["issued_at"])
    assert client.get(path).json()["actual"] == 12.5
    assert client.get("/api/v1/forecasts/4000000000").json()["code"] == "unknown_forecast"
