"""The pages of alert rules under settings: forms of conditions, channels, previews, tests of channels."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from django.utils import timezone

from monitor.analysis.alerts import channels, conditions, reporter_conditions, try_channel
from monitor.analysis.alerts.replay import replay_rule
from monitor.models import Alert, AlertRule, AuditEvent, Notification, Run, Series
from monitor.models.role import UserRole
from monitor.models.run import State
from monitor.web.pages.http import alert_form
from tests.monitor.receivers import RECEIVERS
from tests.monitor.web.accounts.identities import identity_of, session_by
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid
from tests.monitor.web.pages.test_settings_series import fields_of, seen_of, sent

NEW = "/settings/alerts/new/?condition=failures_in_row"
FORM: dict[str, Any] = {
    "name": "two-in-a-row",
    "enabled": "on",
    "failures_in_row": "2",
    "watches.suites": ["main"],
    "notify.0.to": "ada@example.org\r\nbob@example.org",
    "notify.1.use": "on",
    "verb": "save",
}


@pytest.fixture
def operator(grid: Grid) -> Client:
    return builders.browser_of("operator", UserRole.OPERATOR)


def seen(client: Client, path: str = NEW) -> str:
    return seen_of(client.get(path).content.decode())


def test_a_rule_is_defined_with_its_channels_and_changed(operator: Client) -> None:
    sent(operator, NEW, 302, FORM, seen=seen(operator))
    rule = AlertRule.objects.get(name="two-in-a-row")
    assert rule.notify == [{"kind": "email", "to": ["ada@example.org", "bob@example.org"]}, {"kind": "log"}]
    assert (rule.condition, rule.threshold, rule.suites.get().name) == ("failures_in_row", 2, "main")
    path = "/settings/alerts/edit/two-in-a-row/"
    form = {**fields_of(operator, path), "watches.suites": ["main"], "verb": "save"}
    del form["notify.0.use"]
    sent(operator, path, 302, form)
    assert AlertRule.objects.get(name="two-in-a-row").notify == [{"kind": "log"}]


def test_the_user_that_saves_a_rule_of_another_user_is_told_that_it_becomes_the_author(
    operator: Client,
) -> None:
    sent(operator, NEW, 302, FORM, seen=seen(operator))
    rule = AlertRule.objects.get(name="two-in-a-row")
    assert (rule.author_name, rule.suspended) == ("operator", "")
    path, other = "/settings/alerts/edit/two-in-a-row/", builders.browser_of("eve", UserRole.OPERATOR)
    AlertRule.objects.update(suspended="its author was on leave")
    texts = {"watches.suites": ["main"], "notify.0.to": FORM["notify.0.to"]}
    form = {**fields_of(other, path), **texts, "verb": "save"}
    page = sent(other, path, 200, form)
    assert "The rule was of operator. Saved by you, it watches what you may see" in page
    assert "On behalf of operator" in page
    assert "Suspended: its author was on leave" in page
    (reviewed,) = re.findall(r'name="reviewed" value="([^"]+)"', page)
    sent(other, path, 302, form, reviewed=reviewed)
    rule.refresh_from_db()
    assert (rule.author_name, rule.author, rule.suspended) == ("eve", User.objects.get(username="eve"), "")


def test_a_rule_saved_in_a_session_of_another_identity_has_the_rights_of_that_one_and_says_so(
    grid: Grid,
) -> None:
    ada = builders.user("ada")
    wide, narrow = identity_of(ada, "operator"), identity_of(ada, "operator")
    first, second = (session_by(Client(), ada, each) for each in (wide, narrow))
    sent(first, NEW, 302, FORM, seen=seen(first))
    rule = AlertRule.objects.get(name="two-in-a-row")
    assert rule.acting == (ada.pk, wide.pk)
    path = "/settings/alerts/edit/two-in-a-row/"
    texts = {"watches.suites": ["main"], "notify.0.to": FORM["notify.0.to"]}
    form = {**fields_of(second, path), **texts, "verb": "save"}
    page = sent(second, path, 200, form)
    assert f"The rule was of ada, by the identity {wide}. Saved by you, it watches what you may see" in page
    (reviewed,) = re.findall(r'name="reviewed" value="([^"]+)"', page)
    sent(second, path, 302, form, reviewed=reviewed)
    rule.refresh_from_db()
    assert rule.acting == (ada.pk, narrow.pk)
    (change,) = (
        each
        for event in AuditEvent.objects.all()
        for each in event.changes
        if each["kind"].startswith("author of")
    )
    assert change["after"] == f"ada, by the identity {narrow}"


def test_errors_of_threshold_and_channel_stand_beside_their_fields(operator: Client) -> None:
    page = sent(operator, NEW, 409, FORM, failures_in_row="1000", seen=seen(operator))
    assert 'id="field-failures-in-row-problem">Expected at most 100, got 1000' in page
    broken = {"notify.0.to": "", "notify.2.url": "hooks.example.org"}
    page = sent(operator, NEW, 409, FORM, **broken, seen=seen(operator))
    assert 'id="field-notify-2-url-problem">Expected a URL' in page
    assert 'value="hooks.example.org"' in page


def test_the_form_has_every_condition_and_channel_with_its_options(grid: Grid) -> None:
    chief = builders.user("chief", is_superuser=True)
    listed = {choice.name for choice in alert_form.condition_choices()}
    assert listed == {*conditions.names(), *reporter_conditions.names()}
    channel_set = alert_form.channel_fields([])
    for condition in listed:
        fields = {
            field.name: field for field in alert_form.rule_fields(condition, chief, channel_set, is_new=True)
        }
        assert fields[condition].unit
        assert fields[condition].range
        for number, kind in enumerate(channels.names()):
            for option in channels.load(kind).option_types:
                assert f"notify.{number}.{option}" in fields


def test_the_preview_counts_the_alerts_of_stored_runs(operator: Client, grid: Grid, now: datetime) -> None:
    for hours, state in enumerate(("passed", "missed", "missed", "passed", "missed", "missed", "missed")):
        builders.not_run(grid.gather, now - timedelta(hours=10 - hours), State(state), "x")
    Run.objects.update(ended_at=F("slot"))
    page = sent(operator, NEW, 200, FORM, verb="review", seen=seen(operator))
    assert "Preview: 2 alerts in the last 30 days" in page
    assert not AlertRule.objects.exists()
    replayed = replay_rule(Series.objects.all(), conditions.condition("failures_in_row", 1), now, most=3)
    assert (replayed.watched, replayed.replayed) == (2, 0)


def test_a_rule_about_reporters_is_previewed_as_of_now(operator: Client) -> None:
    path = "/settings/alerts/new/?condition=lag_seconds"
    form = {"name": "lag", "enabled": "on", "lag_seconds": "60", "watches.everything": "on", "verb": "review"}
    assert "keeps no history of reporters" in sent(operator, path, 200, form, seen=seen(operator, path))


def test_a_site_admin_defines_rules_about_its_sites_only(grid: Grid) -> None:
    admin = builders.browser_of("sally", UserRole.SITE_ADMIN, "site1")
    shown = admin.get(NEW).content.decode()
    assert 'value="site1"' in shown
    assert 'value="site2"' not in shown
    form = {"name": "mine", "enabled": "on", "failures_in_row": "2", "verb": "save", "seen": seen_of(shown)}
    sent(admin, NEW, 302, form, **{"watches.sites": ["site1"]})
    page = sent(admin, NEW, 409, form, name="theirs", **{"watches.sites": ["site1", "site2"]})
    assert "your roles do not permit this alert rule" in page
    assert list(AlertRule.objects.values_list("name", flat=True)) == ["mine"]
    AlertRule.objects.create(name="wide", everything=True, condition="failures_in_row", threshold=1)
    assert admin.get("/settings/alerts/edit/wide/").status_code == 403
    assert "wide" in admin.get("/settings/alerts/").content.decode()


def test_a_channel_is_tried_by_the_worker_and_its_answer_shown(operator: Client, grid: Grid) -> None:
    with RECEIVERS["webhook"]() as receiver:
        rule = AlertRule.objects.create(
            name="hooked",
            everything=True,
            condition="failures_in_row",
            threshold=1,
            notify=[receiver.channel],
        )
        keys: list[str] = []
        key = try_channel.request(rule, 0, publish=keys.append)
        path = f"/settings/alerts/edit/hooked/?tried={key}"
        assert "the control worker sends" in operator.get(path).content.decode()
        try_channel.deliver(keys[0], timezone.now())
        assert "accepted the test message" in operator.get(path).content.decode()
        assert "a test of the channel" in receiver.received()[0]
    assert operator.post("/settings/alerts/test/hooked/7/").status_code == 302
    assert "has no channel 8" in operator.get("/settings/alerts/edit/hooked/").content.decode()


def test_deleting_a_rule_says_what_is_lost(operator: Client, grid: Grid, now: datetime) -> None:
    rule = AlertRule.objects.create(name="loud", everything=True, condition="failures_in_row", threshold=1)
    alert = Alert.objects.create(rule=rule, series=grid.gather, since=now, opened_at=now, text="x")
    channel = {"kind": "log"}
    Notification.objects.create(alert=alert, event="opened", channel=channel, due_at=now, error="no <room>")
    shown = operator.get("/settings/alerts/edit/loud/").content.decode()
    assert "no &lt;room&gt;" in shown
    path = "/settings/alerts/delete/loud/"
    shown = operator.get(path).content.decode()
    assert "with their messages: 1, of which 1 open" in shown
    sent(operator, path, 302, {"seen": seen_of(shown)})
    assert not AlertRule.objects.exists()


def test_a_default_rule_is_changed_and_not_deleted(operator: Client, grid: Grid) -> None:
    AlertRule.objects.create(
        name="default-lag-seconds", everything=True, condition="lag_seconds", threshold=600, is_default=True
    )
    path = "/settings/alerts/edit/default-lag-seconds/"
    shown = operator.get(path).content.decode() + operator.get("/settings/alerts/").content.decode()
    assert "The service made this rule" in shown
    assert ("Of a grid file" in shown, ">grid file<" in shown, ">service<" in shown) == (False, False, True)
    sent(operator, path, 302, {**fields_of(operator, path), "lag_seconds": "900", "verb": "save"})
    rule = AlertRule.objects.get()
    assert (rule.threshold, rule.is_default) == (900, True)
    assert "makes it again" in operator.get("/settings/alerts/delete/default-lag-seconds/").content.decode()
