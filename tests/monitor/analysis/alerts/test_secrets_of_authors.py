"""The service signs messages with a secret only while it belongs to the author of the rule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from monitor.analysis.alerts import try_channel
from monitor.analysis.alerts.deliver import deliver_due
from monitor.analysis.webhooks.signature import new_secret
from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import Alert, AlertRule, Incident, Notification, Series, Site
from monitor.models.alert import Event
from monitor.models.author import by
from monitor.models.incident import MONITOR
from monitor.models.role import UserRole
from tests.monitor.receivers import Hook, hook

SITE = "site-of-here"  # of the series circle
OPERATORS, OWN, OTHER = (
    "GRIDCAST_WEBHOOK_OPS",
    "GRIDCAST_WEBHOOK_AT_SITE_OF_HERE__CHAT",
    "GRIDCAST_WEBHOOK_AT_SITE_OF_THERE__CHAT",
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    for variable in (OPERATORS, OWN, OTHER):
        monkeypatch.setenv(variable, new_secret())
    with hook() as running:
        yield running


@pytest.fixture
def author(circle: Series) -> User:
    """An operator and admin of the site of the series."""
    user = User.objects.create_user("ada")
    roles.grant(user, Grant(UserRole.OPERATOR))
    roles.grant(user, Grant(UserRole.SITE_ADMIN, SITE))
    return user


def rule_of(author: User | None, channel: dict[str, Any]) -> AlertRule:
    rule = AlertRule.objects.create(
        name="three", condition="failures_in_row", threshold=3, notify=[channel], **by(author)
    )
    rule.sites.add(Site.objects.get(name=SITE))
    return rule


def due(rule: AlertRule, series: Series, now: datetime) -> Notification:
    alert = Alert.objects.create(rule=rule, series=series, since=now, opened_at=now, text="it is down")
    return Notification.objects.create(alert=alert, event=Event.OPENED, channel=rule.notify[0], due_at=now)


@pytest.mark.parametrize("variable", [OPERATORS, OTHER])
def test_a_former_operator_gets_nothing_signed_with_the_secrets_of_operators(
    author: User, circle: Series, server: Hook, noon: datetime, variable: str
) -> None:
    """The rule stays in force, because it is about the author's own site."""
    rule = rule_of(author, {**server.channel, "secret_variable": variable})
    due(rule, circle, noon)
    assert deliver_due(noon) == 1
    assert "webhook-signature" in server.requests[0][0]
    Alert.objects.update(closed_at=noon)
    roles.revoke(author, Grant(UserRole.OPERATOR))
    late = due(rule, circle, noon + timedelta(minutes=1))
    assert deliver_due(noon + timedelta(minutes=1)) == 0
    late.refresh_from_db()
    assert late.withheld.startswith(f"ada: the secret in {variable} belongs to ")
    assert len(server.requests) == 1


@pytest.mark.parametrize("has_author", [True, False])
def test_what_belongs_to_the_author_signs(
    author: User, circle: Series, server: Hook, noon: datetime, has_author: bool
) -> None:
    """A grid file has no author: an operator applied it."""
    variable = OWN if has_author else OPERATORS
    roles.revoke(author, Grant(UserRole.OPERATOR))
    rule = rule_of(author if has_author else None, {**server.channel, "secret_variable": variable})
    due(rule, circle, noon)
    assert deliver_due(noon) == 1
    assert "webhook-signature" in server.requests[0][0]


def test_a_message_of_a_rule_without_a_secret_needs_none(
    author: User, circle: Series, server: Hook, noon: datetime
) -> None:
    roles.revoke(author, Grant(UserRole.OPERATOR))
    due(rule_of(author, dict(server.channel)), circle, noon)
    assert deliver_due(noon) == 1


def test_a_test_message_is_signed_only_with_a_secret_of_the_author(
    author: User, server: Hook, noon: datetime
) -> None:
    rule = rule_of(author, {**server.channel, "secret_variable": OPERATORS})
    key = try_channel.request(rule, 0, publish=lambda _: None)
    roles.revoke(author, Grant(UserRole.OPERATOR))
    try_channel.deliver(key, noon)
    answer = try_channel.answer(key, rule)
    assert answer is not None
    assert answer["state"] == try_channel.FAILED
    assert f"the secret in {OPERATORS} belongs to the operators" in answer["error"]
    assert server.requests == []
    again = try_channel.request(rule, 0, publish=lambda _: None)
    roles.grant(author, Grant(UserRole.OPERATOR))
    try_channel.deliver(again, noon)
    answer = try_channel.answer(again, rule)
    assert answer is not None
    assert (answer["state"], answer["error"]) == (try_channel.DELIVERED, "")


def test_a_message_about_the_suspected_monitor_is_not_signed_for_a_former_operator(
    author: User, server: Hook, noon: datetime
) -> None:
    rule = rule_of(author, {**server.channel, "secret_variable": OPERATORS})
    roles.revoke(author, Grant(UserRole.OPERATOR))
    incident = Incident.objects.create(since=noon, opened_at=noon, kind=MONITOR, name="")
    message = Notification.objects.create(
        incident=incident, event=Event.OPENED, channel=rule.notify[0], due_at=noon
    )
    assert deliver_due(noon) == 0
    message.refresh_from_db()
    assert "use its secret" in message.withheld
    assert server.requests == []
