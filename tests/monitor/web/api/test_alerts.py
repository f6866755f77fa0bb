"""The API lists the open or all alerts of visible series."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from monitor.depot.retention.apply import apply_retention
from monitor.models import Alert, AlertRule, ApiToken, Series, Suite
from monitor.models.token import READ, RUN
from reporters.report import run_id

URL = "/api/v1/alerts"


@pytest.fixture
def client(db: None) -> Client:
    token = ApiToken.objects.issue(User.objects.create_user("reader"), "program", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def alert(circle: Series, noon: datetime) -> Alert:
    rule = AlertRule.objects.create(name="three", everything=True, condition="failures_in_row", threshold=3)
    run = circle.runs.create(id=run_id("circle", noon), slot=noon, due_at=noon, state="failed")
    return Alert.objects.create(
        rule=rule, series=circle, since=noon, opened_at=noon, opened_by=run, text="it is down"
    )


def test_an_open_alert_has_start_reason_and_run(alert: Alert, client: Client) -> None:
    assert client.get(URL).json()["alerts"] == [
        {
            "id": alert.pk,
            "rule": "three",
            "series": "circle",
            "reporter": None,
            "since": "2026-03-01T12:00:00Z",
            "opened_at": "2026-03-01T12:00:00Z",
            "acknowledged_at": None,
            "acknowledged_by": "",
            "resolved_at": None,
            "opened_by_run": str(alert.opened_by_id),
            "resolved_by_run": None,
            "text": "it is down",
            "resolution": "",
            "incident": None,
        }
    ]


def test_an_alert_names_no_run_that_the_api_does_not_have(
    alert: Alert, client: Client, circle: Series, noon: datetime
) -> None:
    """Retention deletes reports and values of a run, not the run; a deletion takes it out of the alert."""
    Suite.objects.update(keep_reports_days=1, keep_samples_days=1, keep_hourly_days=1, keep_daily_days=1)
    apply_retention(noon + timedelta(days=4000), patience_seconds=0)
    (listed,) = client.get(URL).json()["alerts"]
    assert client.get(f"/api/v1/runs/{listed['opened_by_run']}").status_code == 200
    circle.runs.all().delete()  # as a step of the deletion of a series in the background
    (listed,) = client.get(URL).json()["alerts"]
    assert listed["opened_by_run"] is None


def test_closed_alerts_are_listed_on_request(alert: Alert, client: Client, noon: datetime) -> None:
    Alert.objects.update(closed_at=noon + timedelta(hours=1), closed_text="passed")
    assert client.get(URL).json()["alerts"] == []
    (resolved,) = client.get(URL, {"state": "resolved"}).json()["alerts"]
    assert (resolved["resolved_at"], resolved["resolution"]) == ("2026-03-01T13:00:00Z", "passed")


def test_alerts_are_filtered_by_series(alert: Alert, client: Client) -> None:
    assert len(client.get(URL, {"series": "circle"}).json()["alerts"]) == 1
    assert client.get(URL, {"series": "gather"}).json()["alerts"] == []
    assert client.get(URL, {"series": "circle\0"}).status_code == 422


def test_what_is_not_for_you_is_not_there(alert: Alert, circle: Series, client: Client) -> None:
    circle.suite.viewers.add(Group.objects.create(name="physicists"))
    assert client.get(URL, {"state": "all"}).json()["alerts"] == []


def test_a_token_is_required(db: None) -> None:
    assert Client().get(URL).status_code == 401


def test_an_open_alert_is_acknowledged_once(alert: Alert, client: Client) -> None:
    path = f"{URL}/{alert.pk}/acknowledge"
    assert client.post(path).json()["code"] == "not_allowed"
    runner = User.objects.create_user("runner")
    runner.user_permissions.add(Permission.objects.get(codename="run_series"))
    token = ApiToken.objects.issue(runner, "program", [READ, RUN])
    operator = Client(headers={"authorization": f"Bearer {token}"})
    acknowledged = operator.post(path).json()
    assert (acknowledged["acknowledged_by"], acknowledged["resolved_at"]) == ("runner", None)
    assert acknowledged["acknowledged_at"] is not None
    again = operator.post(path)
    assert (again.status_code, again.json()["code"]) == (409, "already_settled")
    assert operator.post(f"{URL}/{alert.pk + 1}/acknowledge").json()["code"] == "unknown_alert"
    for impossible in (0, 2**70):
        assert operator.post(f"{URL}/{impossible}/acknowledge").json()["code"] == "invalid"
