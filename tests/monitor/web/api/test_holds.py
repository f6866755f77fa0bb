"""Holds over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from monitor.models import ApiToken, Hold, Run, Series, Suite
from monitor.models.token import READ, RUN
from tests.monitor.web.api.test_forecasts import problem

URL = "/api/v1/holds"
ORDER = {"kind": "site", "name": "site-of-here", "mode": "pause", "reason": "disk <swap>"}


@pytest.fixture
def ada(db: None) -> User:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="run_series"))
    return user


@pytest.fixture
def client(ada: User) -> Client:
    """A program with a token that may read and run."""
    token = ApiToken.objects.issue(ada, "operator", [READ, RUN])
    return Client(headers={"authorization": f"Bearer {token}"})


def post(client: Client, url: str, body: dict[str, Any]) -> Any:
    return client.post(url, body, content_type="application/json")


def test_holds_are_listed_with_user_reason_and_runs_left(circle: Series, client: Client) -> None:
    answer = post(client, URL, ORDER)
    assert answer.status_code == 201
    (shown,) = client.get(URL).json()["holds"]
    assert shown == answer.json()
    assert client.get(answer["Location"]).json() == shown
    assert (shown["began_by"], shown["reason"], shown["runs_left"]) == ("ada", "disk <swap>", 0)


def test_a_resumed_hold_has_both_users_and_reasons(circle: Series, client: Client) -> None:
    post(client, URL, ORDER)
    answer = post(client, f"{URL}/site/site-of-here/resume", {"reason": "done"})
    assert answer.status_code == 200
    assert client.get(URL).json()["holds"] == []
    (ended,) = client.get(URL, {"state": "all"}).json()["holds"]
    assert (ended["reason"], ended["ended_by"], ended["end_reason"], ended["runs_left"]) == (
        "disk <swap>",
        "ada",
        "done",
        None,
    )


def test_a_second_hold_is_refused_with_the_first(circle: Series, client: Client) -> None:
    post(client, URL, ORDER)
    answer = post(client, URL, {**ORDER, "mode": "drain"})
    assert answer.status_code == 409
    result = problem(answer)
    assert result["code"] == "already_held"
    assert (result["hold"]["began_by"], result["hold"]["mode"]) == ("ada", "pause")


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"reason": " "}, 422, "expected a reason"),
        ({"reason": "x" * 501}, 422, "at most 500"),
        ({"reason": "a\x00"}, 422, "NUL"),
        ({"mode": "stop"}, 422, "pause"),
        ({"kind": "planet"}, 422, "kind"),
        ({"name": "nowhere"}, 404, "there is no site nowhere"),
        ({"name": "a\x00"}, 422, "NUL"),
        ({"name": "\ud800"}, 422, "unicode"),
        ({"until": "2020-01-01T00:00:00Z"}, 422, "expected a time after"),
        ({"until": "9999-12-31T23:59:59-14:00"}, 422, "years 1900 to 2200"),
        ({"until": "2099-01-01T00:00:00"}, 422, "with its zone"),
    ],
)
def test_an_invalid_hold_is_refused(
    circle: Series, client: Client, change: dict[str, str], status: int, message: str
) -> None:
    answer = post(client, URL, {**ORDER, **change})
    assert answer.status_code == status
    assert message in problem(answer)["detail"]
    assert not Hold.objects.exists()


def test_a_hold_may_have_an_end(circle: Series, client: Client) -> None:
    until = timezone.now() + timedelta(hours=1)
    assert post(client, URL, {**ORDER, "until": until.isoformat()}).status_code == 201
    assert Hold.objects.get().until == until


def test_a_scope_without_a_hold_cannot_be_resumed(circle: Series, client: Client) -> None:
    answer = post(client, f"{URL}/site/site-of-here/resume", {"reason": "done"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "not_held")


def orders(client: Client) -> list[int]:
    """Return the answers to all requests that change something."""
    order = {key: ORDER[key] for key in ("kind", "name", "reason")}
    return [
        post(client, URL, ORDER).status_code,
        post(client, f"{URL}/site/site-of-here/resume", {"reason": "x"}).status_code,
        post(client, "/api/v1/runs", order).status_code,
    ]


def test_only_users_who_may_run_series_hold_them(circle: Series, ada: User, client: Client) -> None:
    ApiToken.objects.update(scopes=[READ])
    assert orders(client) == [403, 403, 403]
    ApiToken.objects.update(scopes=[READ, RUN])
    ada.user_permissions.clear()
    assert orders(client) == [403, 403, 403]
    assert not Hold.objects.exists()
    assert not Run.objects.exists()


def close(suite: str) -> Group:
    staff = Group.objects.create(name="staff")
    Suite.objects.get(name=suite).viewers.add(staff)
    return staff


def test_an_invisible_scope_cannot_be_held(circle: Series, ada: User, client: Client) -> None:
    staff = close("main")
    assert orders(client) == [404, 404, 404]
    ada.groups.add(staff)
    assert orders(client) == [201, 200, 202]


def test_a_site_with_invisible_series_cannot_be_held(circle: Series, client: Client) -> None:
    secret = Series.objects.get()
    secret.pk, secret.name, secret.suite = None, "secret", Suite.objects.create(name="closed")
    secret.save()
    secret.bindings.create(role="ring", position=0, resource=circle.bindings.all()[0].resource)
    close("closed")
    answer = post(client, URL, ORDER)
    assert answer.status_code == 403
    assert "secret" not in problem(answer)["detail"]
    asked = post(client, "/api/v1/runs", {key: ORDER[key] for key in ("kind", "name", "reason")}).json()
    assert [run["series"] for run in asked["runs"]] == ["circle"]


def test_holds_of_invisible_scopes_are_not_listed(circle: Series, client: Client) -> None:
    post(client, URL, ORDER)
    close("main")
    assert client.get(URL, {"state": "all"}).json()["holds"] == []


def test_a_held_series_runs_only_with_force(circle: Series, client: Client) -> None:
    post(client, URL, ORDER)
    url = "/api/v1/series/circle/runs"
    refused = post(client, url, {})
    assert (refused.status_code, problem(refused)["code"]) == (409, "held")
    assert problem(refused)["hold"]["reason"] == "disk <swap>"
    forced = post(client, url, {"reason": "is it mended", "force": True})
    assert forced.status_code == 202
    assert Run.objects.get().trigger == "asked for by ada: is it mended"


def test_all_series_of_a_site_run_with_the_reason(circle: Series, client: Client) -> None:
    order = {"kind": "site", "name": "site-of-here", "reason": "new disks"}
    answer = post(client, "/api/v1/runs", order)
    assert answer.status_code == 202
    run = Run.objects.get()
    (queued,) = answer.json()["runs"]
    assert (queued["series"], queued["id"], queued["state"]) == ("circle", str(run.pk), "expected")
    assert answer.json()["held"] == []
    assert client.get(answer["Location"]).json()["runs"] == [queued]
    assert run.trigger == "asked for by ada for the site site-of-here: new disks"
    assert problem(post(client, "/api/v1/runs", {**order, "reason": ""}))["status"] == 422
