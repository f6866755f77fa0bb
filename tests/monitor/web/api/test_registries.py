"""Probes, forecasting methods and alert rules over the API."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

import probes
from forecasting import methods
from monitor.models import Alert, AlertRule, ApiToken, Series
from monitor.models.token import READ
from tests.monitor.web.api.paging import all_pages, code

API = "/api/v1"


def client_of(user: User) -> Client:
    return Client(headers={"authorization": f"Bearer {ApiToken.objects.issue(user, 'program', [READ])}"})


@pytest.fixture
def client(db: None) -> Client:
    return client_of(User.objects.create_superuser("operator"))


def test_every_probe_is_listed_with_parameters_roles_stages_and_metrics(client: Client) -> None:
    listed = {each["name"]: each for each in all_pages(client, f"{API}/probes", "probes")}
    assert list(listed) == probes.names()
    gather = client.get(f"{API}/probes/gather").json()
    assert gather == listed["gather"]
    file_bytes = next(each for each in gather["parameters"] if each["name"] == "file_bytes")
    declared = probes.load("gather").parameters["file_bytes"]
    assert (file_bytes["type"], file_bytes["unit"]) == ("integer", "bytes")
    assert (file_bytes["default"], file_bytes["minimum"]) == (declared.default, declared.minimum)
    assert [role["name"] for role in gather["roles"]] == ["sources", "compute", "destination"]
    names = {metric["name"] for metric in gather["metrics"]}
    assert {"total.seconds", "total_core.seconds", "stage.compute.seconds"} <= names


def test_every_forecasting_method_is_listed_with_what_it_needs(client: Client) -> None:
    listed = {each["name"]: each for each in all_pages(client, f"{API}/methods", "methods")}
    assert list(listed) == methods.names()
    assert all(each["description"] for each in listed.values())
    assert listed["seasonal"]["uses_times"] is True
    assert listed["last_value"]["uses_predictors"] is False
    assert client.get(f"{API}/methods/seasonal").json() == listed["seasonal"]


@pytest.mark.parametrize("noun", ["probe", "method", "alert_rule"])
def test_an_unknown_name_is_refused(client: Client, noun: str) -> None:
    path = f"{API}/{noun.replace('_', '-')}s/no-such-thing"
    assert code(client.get(path)) == (404, f"unknown_{noun}")


@pytest.fixture
def rule(circle: Series) -> AlertRule:
    channel = {"kind": "email", "to": ["secret@example.org"]}
    rule = AlertRule.objects.create(name="main", condition="failures_in_row", threshold=3, notify=[channel])
    rule.series.add(circle)
    return rule


def test_an_alert_rule_says_what_it_watches_and_hides_addresses(client: Client, rule: AlertRule) -> None:
    answer = client.get(f"{API}/alert-rules/main")
    shown = answer.json()
    assert (shown["condition"], shown["threshold"], shown["series"]) == ("failures_in_row", 3, ["circle"])
    assert shown["channels"] == ["email"]
    assert b"secret" not in answer.content


def test_an_alert_is_shown_to_users_who_see_its_series(
    client: Client, circle: Series, rule: AlertRule, noon: datetime
) -> None:
    alert = Alert.objects.create(rule=rule, series=circle, since=noon, opened_at=noon, text="3 in a row")
    shown = client.get(f"{API}/alerts/{alert.pk}").json()
    assert (shown["id"], shown["rule"], shown["text"]) == (alert.pk, "main", "3 in a row")
    circle.suite.viewers.add(Group.objects.create(name="staff"))
    stranger = client_of(User.objects.create_user("stranger"))
    assert code(stranger.get(f"{API}/alerts/{alert.pk}")) == (404, "unknown_alert")
    assert code(client.get(f"{API}/alerts/{alert.pk + 1}")) == (404, "unknown_alert")


def test_alert_rules_are_filtered_and_paged(client: Client) -> None:
    AlertRule.objects.all().delete()
    for number in range(5):
        AlertRule.objects.create(
            name=f"rule-{number}", condition="silent_seconds", threshold=60, enabled=number != 3
        )
    names = [each["name"] for each in all_pages(client, f"{API}/alert-rules", "alert_rules")]
    assert names == [f"rule-{number}" for number in range(5)]
    off = all_pages(client, f"{API}/alert-rules", "alert_rules", is_enabled="false")
    assert [each["name"] for each in off] == ["rule-3"]
    assert all_pages(client, f"{API}/alert-rules", "alert_rules", condition="lag_seconds") == []


def test_a_rule_is_visible_to_users_who_see_what_it_watches(circle: Series, rule: AlertRule) -> None:
    staff = Group.objects.create(name="staff")
    member, other = (User.objects.create_user(name) for name in ("member", "other"))
    member.groups.add(staff)
    circle.suite.viewers.add(staff)
    everything = AlertRule.objects.create(
        name="all", condition="silent_seconds", threshold=60, everything=True
    )
    seen = [{each.name for each in AlertRule.objects.visible_to(user)} for user in (member, other)]
    assert seen[0] >= {"main", everything.name}
    assert "main" not in seen[1]
    assert everything.name in seen[1]
    assert code(client_of(other).get(f"{API}/alert-rules/main")) == (404, "unknown_alert_rule")
