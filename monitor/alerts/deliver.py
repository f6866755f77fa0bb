"""Tell channels of alerts: at least once, at most so many attempts, and never in anybody's way."""

from __future__ import annotations

import logging
import queue
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.urls import reverse

from monitor.alerts import channels
from monitor.alerts.channels.base import Message, NotifierError
from monitor.celery import BROKER_REFUSES, app
from monitor.db.advisory_locks import AdvisoryLock, session_lock
from monitor.models import Notification
from monitor.models.alert import Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from monitor.models import Alert

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 6
FIRST_PAUSE = timedelta(seconds=30)  # then four times as long each time: all attempts take three hours
SEND_SECONDS = 20.0
BUSY_SECONDS = 30.0  # what is left then is for the next task


def ask(now: datetime, publish: Callable[[], None] | None = None) -> None:
    """Have somebody send what is due, if anything is. While the broker is away the next tick asks again."""
    if not Notification.objects.due(now).exists():
        return
    try:
        (publish or _publish)()
    except BROKER_REFUSES as error:
        logger.warning("the broker does not take it, notifications wait: %s", error)


def send_due(now: datetime, *, limit_seconds: float = SEND_SECONDS) -> int:
    """Send what is due, each message for at most *limit_seconds*; how many were tried. No transaction is open
    meanwhile. What is claimed and never heard of again is due again after its pause.
    """
    tried, until = 0, time.monotonic() + BUSY_SECONDS
    with session_lock(AdvisoryLock.NOTIFICATIONS) as alone:
        while alone and time.monotonic() < until:
            claimed = _claim(now)
            if claimed is None:
                break
            _note(claimed, _tell(claimed, limit_seconds), now)
            tried += 1
    return tried


def pause(attempts: int) -> timedelta:
    """How long to wait after so many."""
    return FIRST_PAUSE * int(4 ** (attempts - 1))


def message(one: Notification) -> Message:
    """What *one* says."""
    alert, is_over = one.alert, one.event == Event.CLOSED
    return Message(
        id=f"notification-{one.pk}-{alert.opened_at:%Y%m%dT%H%M%SZ}",
        event=one.event,
        rule=alert.rule.name,
        series=alert.series.name,
        text=alert.closed_text if is_over else alert.text,
        since=alert.since,
        at=_at(alert) if is_over else alert.opened_at,
        url=f"{settings.GRIDCAST_URL}{reverse('alerts')}" if settings.GRIDCAST_URL else "",
    )


def _at(alert: Alert) -> datetime:
    return alert.closed_at or alert.opened_at


def _publish() -> None:
    app.send_task("monitor.tasks.notify", expires=10, retry=False)


def _claim(now: datetime) -> Notification | None:
    with transaction.atomic():
        due = Notification.objects.due(now).select_related("alert__rule", "alert__series")
        one = due.select_for_update(skip_locked=True, of=("self",)).first()
        if one is not None:
            one.attempts += 1
            one.due_at = now + pause(one.attempts)
            one.save(update_fields=["attempts", "due_at"])
        return one


def _tell(one: Notification, limit_seconds: float) -> str:
    """Try it; what went wrong, or nothing. A thread of its own, because nothing else bounds every channel:
    one that hangs is left to its own limits."""
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def tell() -> None:
        try:
            channels.made(one.channel).send(said)
            answers.put("")
        except Exception as error:  # noqa: BLE001 - a channel that is broken is no reason to stop the others
            known = isinstance(error, NotifierError)
            answers.put(str(error) if known else f"{type(error).__name__}: {error}")

    said = message(one)
    threading.Thread(target=tell, name=f"notify {one.kind}", daemon=True).start()
    try:
        return answers.get(timeout=limit_seconds)
    except queue.Empty:
        return f"{one.kind} did not take it within {limit_seconds:g} s"


def _note(one: Notification, error: str, now: datetime) -> None:
    if error:
        over = one.attempts >= MAX_ATTEMPTS
        logger.warning("%s%s: %s", "given up: " if over else "", one, error)
        Notification.objects.filter(pk=one.pk).update(error=error, due_at=None if over else F("due_at"))
    else:
        Notification.objects.filter(pk=one.pk).update(error="", due_at=None, sent_at=now)
