"""Programs work on incidents as users do on the page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.models import Alert, AlertRule, ApiToken, Incident, Series
from monitor.models.token import READ, RUN
from tests.monitor.conftest import NOON
from tests.monitor.failing_sites import grid_of_sites, runs

ACTIONS = {"acknowledge": {}, "assign": {}, "resolve": {"text": "new disk"}, "events": {"text": "asked"}}


@pytest.fixture
def path(circle: Series) -> str:
    """The path of an open incident of a-1."""
    runs(grid_of_sites(circle), ["a-1"], "xx")
    update_incidents(NOON)
    return f"/api/v1/incidents/{Incident.objects.get().pk}"


def program(*scopes: str, may_run: bool = True) -> Client:
    user = User.objects.create_user("ann")
    if may_run:
        user.user_permissions.add(Permission.objects.get(codename="run_series"))
    token = ApiToken.objects.issue(user, "program", list(scopes))
    return Client(headers={"authorization": f"Bearer {token}"})


def post(client: Client, path: str, content: Any = None) -> Any:
    return client.post(path, content if content is not None else {}, content_type="application/json")


def test_a_program_assigns_comments_and_resolves(path: str) -> None:
    User.objects.create_user("bob")
    client = program(READ, RUN)
    assert post(client, f"{path}/assign").json()["assigned_to"] == "ann"
    assert post(client, f"{path}/assign", {"to": "bob"}).json()["assigned_to"] == "bob"
    assert post(client, f"{path}/assign", {"to": ""}).json()["assigned_to"] == ""
    comment = post(client, f"{path}/events", {"text": "  asked the vendor "})
    assert comment.status_code == 201
    assert {key: comment.json()[key] for key in ("action", "user", "text", "series")} == {
        "action": "commented",
        "user": "ann",
        "text": "asked the vendor",
        "series": None,
    }
    resolved = post(client, f"{path}/resolve", {"text": "new disk"}).json()
    assert (resolved["resolved_by"], resolved["resolution"]) == ("ann", "new disk")
    assert post(client, f"{path}/events", {"text": "it was the controller"}).status_code == 201
    actions = [event["action"] for event in client.get(f"{path}/events").json()["events"]][2:]
    assert actions == ["assigned", "assigned", "assigned", "commented", "resolved", "commented"]


@pytest.mark.parametrize("action", ["acknowledge", "assign", "resolve"])
def test_a_resolved_incident_is_refused(path: str, action: str) -> None:
    client = program(READ, RUN)
    post(client, f"{path}/resolve", {"text": "new disk"})
    answer = post(client, f"{path}/{action}", ACTIONS[action])
    assert (answer.status_code, answer.json()["code"]) == (409, "resolved")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("scope", "may_run"), [(READ, True), (RUN, False)])
def test_an_action_needs_scope_and_permission(path: str, action: str, scope: str, may_run: bool) -> None:
    answer = post(program(scope, may_run=may_run), f"{path}/{action}", ACTIONS[action])
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_incident_that_the_user_may_not_see_is_unknown(path: str, action: str) -> None:
    Series.objects.get(name="a-1").suite.viewers.create(name="insiders")
    answer = post(program(READ, RUN), f"{path}/{action}", ACTIONS[action])
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_incident")


@pytest.mark.parametrize("text", [None, "", "  ", "x" * 2001, "a\x00b", 7])
@pytest.mark.parametrize("action", ["resolve", "events"])
def test_a_text_that_cannot_be_kept_is_refused(path: str, action: str, text: Any) -> None:
    client = program(READ, RUN)
    assert post(client, f"{path}/{action}", {"text": text}).status_code == 422
    assert Incident.objects.get().resolved_at is None
    assert Incident.objects.get().events.count() == 2


@pytest.mark.parametrize("name", ["carl", "dora", "x" * 500])
def test_an_incident_is_assigned_to_active_users_only(path: str, name: str) -> None:
    User.objects.create_user("dora", is_active=False)
    answer = post(program(READ, RUN), f"{path}/assign", {"to": name})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_user")


def test_an_incident_of_alerts_names_its_condition_and_series(path: str) -> None:
    rule = AlertRule.objects.create(name="silence", everything=True, condition="silent_seconds", threshold=60)
    silent = Incident.objects.create(
        kind="series", name="b-1", condition="silent_seconds", headline="silence", since=NOON, opened_at=NOON
    )
    series = Series.objects.get(name="b-1")
    alert = Alert.objects.create(
        rule=rule, series=series, since=NOON, opened_at=NOON, text="no report", incident=silent
    )
    client = program(READ)
    answer = client.get(f"/api/v1/incidents/{silent.pk}").json()
    assert (answer["title"], answer["condition"], answer["series"]) == ("silence", "silent_seconds", ["b-1"])
    (listed,) = client.get("/api/v1/alerts?series=b-1").json()["alerts"]
    assert (listed["id"], listed["incident"]) == (alert.pk, silent.pk)


def test_a_silence_is_previewed_begun_listed_and_ended(path: str) -> None:
    rule = AlertRule.objects.create(
        name="runs", everything=True, condition="failures_in_row", threshold=1, notify=[{"kind": "log"}]
    )
    incident = Incident.objects.get()
    series = Series.objects.get(name="a-1")
    Alert.objects.create(rule=rule, series=series, since=NOON, opened_at=NOON, text="x", incident=incident)
    client = program(READ, RUN)
    preview = {"until": None, "by": "", "alert_count": 1, "rules": ["runs"], "channels": ["log"]}
    assert client.get(f"{path}/silence").json() == preview
    until = (timezone.now() + timedelta(hours=1)).replace(microsecond=0)
    order = {"until": until.isoformat(), "text": "the vendor is on the way"}
    begun = client.put(f"{path}/silence", order, content_type="application/json").json()
    assert (begun["until"], begun["by"]) == (until.isoformat().replace("+00:00", "Z"), "ann")
    listed = {
        given: [row["id"] for row in client.get(f"/api/v1/incidents?is_silenced={given}").json()["incidents"]]
        for given in ("true", "false")
    }
    assert listed == {"true": [incident.pk], "false": []}
    assert client.delete(f"{path}/silence").status_code == 204
    assert client.get(f"{path}/silence").json() == preview
    texts = list(incident.events.filter(action="silenced").values_list("text", flat=True))
    assert texts == [f"until {until:%Y-%m-%d %H:%M} UTC: the vendor is on the way", "no longer"]


@pytest.mark.parametrize("days", [-1, 32])
def test_a_silence_ends_within_a_month(path: str, days: int) -> None:
    until = timezone.now() + timedelta(days=days)
    answer = program(READ, RUN).put(
        f"{path}/silence", {"until": until.isoformat()}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_a_silence_and_an_acknowledgement_end_with_the_right_to_change_the_incident(path: str) -> None:
    client, until = program(READ, RUN), timezone.now() + timedelta(hours=1)
    operator = User.objects.create_superuser("chief")
    reader = Client(headers={"authorization": f"Bearer {ApiToken.objects.issue(operator, 'x', [READ, RUN])}"})
    browser = Client()
    browser.force_login(operator)
    page = path.removeprefix("/api/v1") + "/"
    order = {"until": until.isoformat(), "text": ""}
    assert client.put(f"{path}/silence", order, content_type="application/json").status_code == 200
    assert post(client, f"{path}/acknowledge").json()["acknowledged_by"] == "ann"
    assert post(reader, f"{path}/acknowledge").json()["acknowledged_by"] == "ann"
    assert "Silenced by ann" in browser.get(page).content.decode()

    User.objects.get(username="ann").user_permissions.clear()
    assert reader.get(f"{path}/silence").json()["until"] is None
    for is_silenced, count in (("true", 0), ("false", 1)):
        listed = reader.get(f"/api/v1/incidents?is_silenced={is_silenced}").json()["incidents"]
        assert len(listed) == count
    text = browser.get(page).content.decode()
    assert "Silenced" not in text
    assert ">Acknowledge</button>" in text
    assert post(reader, f"{path}/acknowledge").json()["acknowledged_by"] == "chief"
