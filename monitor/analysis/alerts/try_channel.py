"""Try a channel of a rule: the control worker, which has the secrets, sends a message and keeps the answer.

The answer is kept in the cache for an hour: it is no delivery of an alert.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.core.cache import cache

from monitor.analysis.alerts.channels.base import Message
from monitor.analysis.alerts.deliver import send
from monitor.analysis.alerts.rule_authors import foreign_secret
from monitor.celery import BROKER_REFUSES, app
from monitor.models import AlertRule, WebhookReceiver

KEPT_SECONDS = 3600
PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"


class CannotTry(Exception):
    """The worker cannot be asked; the message says why."""


def request(rule: AlertRule, position: int, publish: Callable[[str], None] | None = None) -> str:
    """Ask the control worker to try the channel at *position* of *rule*; return the key of the answer.

    Raises:
        CannotTry: there is no such channel, or the broker is unavailable.
    """
    if not 0 <= position < len(rule.notify):
        raise CannotTry(f"rule {rule.name} has no channel {position + 1}")
    key = secrets.token_urlsafe(12)
    channel = rule.notify[position]
    cache.set(
        _name(key), {"rule": rule.name, "channel": channel, "state": PENDING, "error": ""}, KEPT_SECONDS
    )
    try:
        (publish or _publish)(key)
    except BROKER_REFUSES as error:
        raise CannotTry(f"the broker is unavailable: {error}") from error
    return key


def deliver(key: str, now: datetime) -> None:
    """Send the message that was asked for under *key*, and keep the answer of the channel.

    It is signed only with a secret of the rule's author, as a message about an alert.
    """
    asked = cache.get(_name(key))
    if asked is None or asked["state"] != PENDING:
        return
    rule = AlertRule.objects.select_related("author").filter(name=asked["rule"]).first()
    foreign = "the rule was deleted meanwhile" if rule is None else foreign_secret(rule, asked["channel"])
    error = foreign or send(asked["channel"], _message(key, asked["rule"], now))
    if not error:  # a receiver that was gone is back
        WebhookReceiver.objects.welcome([asked["channel"].get("url", "")])
    answer = {**asked, "state": FAILED if error else DELIVERED, "error": str(error or "")}
    cache.set(_name(key), answer, KEPT_SECONDS)


def answer(key: str, rule: AlertRule) -> Mapping[str, Any] | None:
    """Return state, channel and error of the attempt *key* for *rule*; None if there is none."""
    kept: Mapping[str, Any] | None = cache.get(_name(key)) if key.isascii() and len(key) < 50 else None
    return kept if kept is not None and kept["rule"] == rule.name else None


def _message(key: str, rule: str, now: datetime) -> Message:
    text = "a test of the channel; no alert was opened"
    return Message(
        id=f"test-{key}", event="opened", rule=rule, series="", text=text, since=now, at=now, cause="test"
    )


def _publish(key: str) -> None:
    app.send_task("monitor.tasks.try_channel", args=[key], expires=60, retry=False)


def _name(key: str) -> str:
    return f"try-channel-{key}"
