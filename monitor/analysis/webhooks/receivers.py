"""What receivers ask for: a pause by Retry-After (429, 503), or no further message at all (410 Gone).

It holds for a URL, whichever webhooks and channels of alert rules post to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from monitor.analysis.webhooks.define import definition_of, follow_runs, noted
from monitor.depot.access import audit
from monitor.depot.access.audit import Action, Actor
from monitor.depot.access.audit_trail import audit_trail, note
from monitor.models import Webhook, WebhookReceiver
from monitor.models.audit_event import AuditChannel, AuditOutcome

logger = logging.getLogger(__name__)
_WORKER = Actor(user="control worker")


def obey(url: str, retry_seconds: float, answer: str, now: datetime) -> datetime:
    """Send nothing to *url* for *retry_seconds*, as it asks in its *answer*; return until when."""
    resume_at = now + timedelta(seconds=retry_seconds)
    values = {"resume_at": resume_at, "answer": answer}
    WebhookReceiver.objects.update_or_create(url=url, defaults=values)
    return resume_at


def mark_gone(url: str, answer: str, now: datetime) -> None:
    """Record that the receiver at *url* has answered 410 Gone."""
    values = {"gone_at": now, "answer": answer}
    WebhookReceiver.objects.update_or_create(url=url, defaults=values)


@transaction.atomic
def disable_gone(hook: Webhook, answer: str, now: datetime) -> None:
    """Disable the webhooks with the URL of *hook*: its receiver is gone.

    Their messages wait until a user enables them again.
    """
    same = Webhook.objects.filter(url=hook.url, enabled=True)
    names = list(same.select_for_update().order_by("pk").values_list("name", flat=True))
    if hook.name not in names:  # a user has changed it meanwhile
        return
    logger.warning("%s disabled: %s", ", ".join(f"webhook {name}" for name in names), answer)
    mark_gone(hook.url, answer, now)
    with audit_trail() as changes:
        for each in same:
            before = noted(definition_of(each))
            note("webhook", each.name, before=before, after={**before, "enabled": False, "because": answer})
        same.update(enabled=False)
    action = Action(AuditChannel.COMMAND, "disable webhook", ", ".join(names), AuditOutcome.DONE, 0)
    audit.record(_WORKER, action, now, changes)
    follow_runs()


def answers_of_gone(urls: Iterable[str]) -> dict[str, str]:
    """Return, by URL, what the receivers at *urls* that are gone have answered, and when."""
    gone = WebhookReceiver.objects.gone().filter(url__in=list(urls))
    return {each.url: f"{each.answer} ({each.gone_at:%Y-%m-%d %H:%M} UTC)" for each in gone}


def pauses_of(urls: Iterable[str], now: datetime) -> dict[str, datetime]:
    """Return, by URL, until when the receivers at *urls* have asked to be left alone."""
    waiting = WebhookReceiver.objects.waiting(now).filter(url__in=list(urls))
    return {each.url: each.resume_at for each in waiting if each.resume_at is not None}
