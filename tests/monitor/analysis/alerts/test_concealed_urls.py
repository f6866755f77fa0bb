"""The path of a channel's URL is a secret: only operators and the author of the rule read it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client

from monitor.analysis.alerts.concealed_urls import concealed_channels
from monitor.analysis.webhooks.destination import HIDDEN
from monitor.models import AlertRule, AuditEvent, Site
from monitor.models.author import by
from monitor.models.role import UserRole, act_as
from tests.monitor.web.accounts.identities import identity_of, session_by
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
SECRET = "/services/T0/B1/token"
URL = f"https://chat.example.org:8443{SECRET}"
CHANNEL = {"kind": "webhook", "url": URL}
ENTRY, FORM = "/api/v1/grid/alerts/three", "/settings/alerts/edit/three/"


@pytest.fixture
def site_admin() -> Client:
    return builders.browser_of("ada", UserRole.SITE_ADMIN, "ncsa")


@pytest.fixture
def operator() -> Client:
    return builders.browser_of("chief", UserRole.OPERATOR)


@pytest.fixture(autouse=True)
def rule() -> AlertRule:
    """A rule of an operator about a site that has its own admin."""
    row = AlertRule.objects.create(name="three", condition="failures_in_row", threshold=3, notify=[CHANNEL])
    row.sites.add(builders.site("ncsa").site)
    return row


def put(client: Client, entry: dict[str, Any], **more: Any) -> Any:
    return client.put(ENTRY, json.dumps({"entry": entry, **more}), content_type="application/json")


def test_an_operator_reads_the_url_and_a_site_admin_its_origin(site_admin: Client, operator: Client) -> None:
    assert operator.get(ENTRY).json()["entry"]["notify"] == [CHANNEL]
    answer = site_admin.get(ENTRY)
    (channel,) = answer.json()["entry"]["notify"]
    assert channel["url"].startswith(f"https://chat.example.org:8443/{HIDDEN}")
    assert SECRET not in answer.content.decode()
    assert answer.json()["version"] == operator.get(ENTRY).json()["version"]


def test_the_author_reads_its_own_url(site_admin: Client) -> None:
    AlertRule.objects.update(**by(User.objects.get(username="ada")))
    assert site_admin.get(ENTRY).json()["entry"]["notify"] == [CHANNEL]
    assert SECRET in site_admin.get(FORM).content.decode()


def test_the_author_does_not_read_it_in_a_session_of_another_identity(rule: AlertRule) -> None:
    ada = builders.user("ada")
    identities = [identity_of(ada, "site_admin:ncsa") for _ in range(2)]
    act_as(ada, identities[0].pk)
    AlertRule.objects.update(**by(ada))
    reads = [SECRET in session_by(Client(), ada, each).get(FORM).content.decode() for each in identities]
    assert reads == [True, False]


def test_neither_the_form_nor_its_token_has_the_path(site_admin: Client, operator: Client) -> None:
    assert SECRET in operator.get(FORM).content.decode()
    for path in (FORM, "/settings/alerts/delete/three/"):
        page: Any = site_admin.get(path)
        seen = page.context["form"].seen if "form" in page.context else page.context["seen"]
        assert SECRET not in page.content.decode()
        assert SECRET not in json.dumps(signing.loads(seen, salt="gridcast.settings"))


def test_what_a_change_replaces_is_told_without_the_path(site_admin: Client) -> None:
    entry = site_admin.get(ENTRY).json()["entry"]
    entry["notify"] = [{"kind": "log"}]
    for options in ({"is_dry_run": True}, {}):
        answer = put(site_admin, entry, **options)
        assert answer.status_code == 200
        assert "https://chat.example.org:8443/" in "".join(answer.json()["changes"])
        assert SECRET not in answer.content.decode()
    event = AuditEvent.objects.filter(changes__contains=[{"name": "three"}]).latest("pk")
    assert SECRET not in json.dumps(event.changes)


def test_a_site_admin_who_edits_the_rule_enters_the_url_again(site_admin: Client) -> None:
    entry = site_admin.get(ENTRY).json()["entry"]
    refused = put(site_admin, entry)
    assert refused.status_code == 422
    assert "its path is hidden from you: enter the whole URL" in refused.json()["detail"]
    assert put(site_admin, {**entry, "notify": [CHANNEL]}).status_code == 200
    assert AlertRule.objects.get().author_name == "ada"


def test_an_outdated_form_is_recognised_by_the_path_that_it_does_not_have(
    site_admin: Client, rule: AlertRule
) -> None:
    page: Any = site_admin.get("/settings/alerts/delete/three/")
    rule.notify = [{**CHANNEL, "url": f"{URL}2"}]
    rule.save()
    answer: Any = site_admin.post("/settings/alerts/delete/three/", {"seen": page.context["seen"]})
    assert "was changed meanwhile" in answer.content.decode()
    page = site_admin.get("/settings/alerts/delete/three/")
    site_admin.post("/settings/alerts/delete/three/", {"seen": page.context["seen"]})
    assert not AlertRule.objects.exists()


def test_the_admin_page_asks_a_site_admin_for_the_url(site_admin: Client, rule: AlertRule) -> None:
    address = f"/admin/monitor/alertrule/{rule.pk}/change/"
    page: Any = site_admin.get(address)
    assert SECRET not in page.content.decode()
    site = Site.objects.get(name="ncsa")
    form = {"name": "three", "condition": "failures_in_row", "threshold": 4, "severity": "major"}
    concealed = json.dumps(list(concealed_channels([CHANNEL])))
    answer = site_admin.post(address, {**form, "sites": [site.pk], "notify": concealed})
    assert "its path is hidden from you" in answer.content.decode()
    assert site_admin.post(address, {**form, "sites": [site.pk], "notify": "[]"}).status_code == 302
    event = AuditEvent.objects.filter(changes__contains=[{"name": "three"}]).latest("pk")
    assert SECRET not in json.dumps(event.changes)
