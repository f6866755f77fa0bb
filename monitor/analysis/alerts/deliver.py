"""Deliver notifications to channels: at least once, and in at most ``MAX_ATTEMPTS`` attempts."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from monitor.analysis.alerts import channels
from monitor.analysis.alerts.announcements import Decision, Handling, decision_of, open_alerts_on
from monitor.analysis.alerts.channels.base import Message, NotDelivered, NotifierError
from monitor.analysis.webhooks.receivers import answers_of_gone, mark_gone, obey
from monitor.celery import BROKER_REFUSES, app
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.core.egress.backoff import FIRST_PAUSE, pause_after
from monitor.models import Incident, Notification
from monitor.models.alert import Event
from monitor.models.incident import IncidentAction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 6  # all attempts take three hours
SEND_SECONDS = 20.0
WITHHELD_CHARACTERS = 300  # of the reason
BUSY_SECONDS = 30.0  # one task delivers for this long, the next task the rest


def dispatch_due(now: datetime, publish: Callable[[], None] | None = None) -> None:
    """Send the task that delivers notifications, if a notification is due.

    *publish* sends the task, by default to the broker. If the broker is unavailable, the next tick retries.
    """
    if not Notification.objects.due(now).exists():
        return
    try:
        (publish or _publish)()
    except BROKER_REFUSES as error:
        logger.warning("cannot dispatch notifications, the next tick retries: %s", error)


def deliver_due(now: datetime, *, limit_seconds: float = SEND_SECONDS) -> int:
    """Deliver due notifications, each within *limit_seconds*; return how many were attempted.

    No transaction is open while a channel sends. If the worker dies, the notification is due again after a
    pause.
    """
    attempted, until = 0, time.monotonic() + BUSY_SECONDS
    with session_lock(AdvisoryLock.NOTIFICATIONS) as is_locked:
        while is_locked and time.monotonic() < until:
            notification = _claim(now)
            if notification is None:
                break
            error = send(notification.channel, message(notification), limit_seconds)
            _record(notification, error, now)
            attempted += 1
    return attempted


def message(notification: Notification) -> Message:
    alert = notification.alert
    if alert is None:
        return _message_of_suspicion(notification)
    is_closed = notification.event == Event.CLOSED
    incident = alert.incident
    return Message(
        id=f"notification-{notification.pk}-{alert.opened_at:%Y%m%dT%H%M%SZ}",
        event=notification.event,
        rule=alert.rule.name,
        series=alert.series.name if alert.series else "",
        reporter=alert.reporter.name if alert.reporter else "",
        text=alert.closed_text if is_closed else alert.text,
        since=alert.since,
        at=alert.closed_at if is_closed and alert.closed_at else alert.opened_at,
        url=_url(incident),
        incident=incident.pk if incident else None,
        cause=str(incident) if incident else "",
        open_alerts=open_alerts_on(notification),
        severity=alert.rule.severity,
    )


def _message_of_suspicion(notification: Notification) -> Message:
    incident = notification.incident
    if incident is None:
        raise ValueError("expected a notification of an alert or of an incident")
    is_closed = notification.event == Event.CLOSED
    opening = incident.events.filter(action=IncidentAction.OPENED).first()
    return Message(
        id=f"notification-{notification.pk}-{incident.opened_at:%Y%m%dT%H%M%SZ}",
        event=notification.event,
        rule="",
        series="",
        text=incident.resolution
        if is_closed
        else f"{opening.text if opening else ''}; their messages are held",
        since=incident.since,
        at=incident.resolved_at if is_closed and incident.resolved_at else incident.opened_at,
        url=_url(incident),
        incident=incident.pk,
        cause=str(incident),
    )


def _url(incident: Incident | None) -> str:
    if not settings.GRIDCAST_URL:
        return ""
    path = reverse("incident", args=[incident.pk]) if incident else reverse("alerts")
    return f"{settings.GRIDCAST_URL}{path}"


def _publish() -> None:
    app.send_task("monitor.tasks.notify", expires=10, retry=False)


def _claim(now: datetime) -> Notification | None:
    """Return the next notification to send; postpone or withhold those before it that are not sent now."""
    related = (
        "alert__rule__author",
        "alert__series",
        "alert__reporter",
        "alert__incident__signature",
        "incident",
    )
    while True:
        with transaction.atomic():
            due = Notification.objects.due(now).select_related(*related)
            notification = due.select_for_update(skip_locked=True, of=("self",)).first()
            if notification is None:
                return None
            decision = _gone(notification) or decision_of(notification, now)
            if decision.handling == Handling.WITHHOLD:
                notification.due_at, notification.withheld = None, decision.reason
            elif decision.handling == Handling.WAIT:
                notification.due_at = now + FIRST_PAUSE
            else:
                notification.attempts += 1
                notification.due_at = now + pause_after(notification.attempts)
            notification.save(update_fields=["attempts", "due_at", "withheld"])
            if decision.handling == Handling.SEND:
                return notification


def _gone(notification: Notification) -> Decision | None:
    """Return the decision to withhold *notification* if the receiver of its channel is gone."""
    answers = answers_of_gone([notification.channel.get("url", "")])
    if not answers:
        return None
    reason = f"the channel is disabled until the rule is saved again: {', '.join(answers.values())}"
    return Decision(Handling.WITHHOLD, reason[:WITHHELD_CHARACTERS])


def send(
    channel: Mapping[str, Any], sent: Message, limit_seconds: float = SEND_SECONDS
) -> NotDelivered | None:
    """Send *sent* to *channel*; return why it was not delivered, None if the channel has accepted it.

    The channel runs in a thread of its own, which is abandoned after *limit_seconds*: no other limit works
    for every channel.
    """
    errors: queue.SimpleQueue[NotDelivered | None] = queue.SimpleQueue()

    def attempt() -> None:
        try:
            channels.notifier(channel).send(sent)
            errors.put(None)
        except NotDelivered as error:
            errors.put(error)
        except Exception as error:  # noqa: BLE001 - a broken channel must not stop the others
            is_ours = isinstance(error, NotifierError)
            errors.put(NotDelivered(str(error) if is_ours else f"{type(error).__name__}: {error}"))

    threading.Thread(target=attempt, name=f"notify {channel['kind']}", daemon=True).start()
    try:
        return errors.get(timeout=limit_seconds)
    except queue.Empty:
        return NotDelivered(f"{channel['kind']} did not accept the message within {limit_seconds:g} s")


def _record(notification: Notification, error: NotDelivered | None, now: datetime) -> None:
    row = Notification.objects.filter(pk=notification.pk)
    url = str(notification.channel.get("url", ""))
    if error is not None and error.is_gone:
        logger.warning("cannot deliver %s, and its channel is disabled: %s", notification, error)
        mark_gone(url, str(error), now)
        row.update(error=str(error), due_at=None)  # given up; others for the channel are withheld
    elif error is not None:
        is_given_up = notification.attempts >= MAX_ATTEMPTS
        consequence = "given up" if is_given_up else "retried later"
        logger.warning("cannot deliver %s (%s): %s", notification, consequence, error)
        due_at = notification.due_at
        if error.retry_seconds is not None and due_at is not None:
            due_at = max(due_at, obey(url, error.retry_seconds, str(error), now))
        row.update(error=str(error), due_at=None if is_given_up else due_at)
    else:
        row.update(error="", due_at=None, sent_at=now)
