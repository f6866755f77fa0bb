"""Suspend webhooks whose author may not define them any more: a webhook acts on behalf of its author."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from monitor.depot.access.suspension import lost_right, suspend
from monitor.models import Webhook, WebhookDelivery
from monitor.models.author import AuthorRights, rights_of
from monitor.models.webhook import MANAGE_WEBHOOKS, DeliveryState

if TYPE_CHECKING:
    from datetime import datetime


@transaction.atomic
def judge_authors(now: datetime) -> None:
    """Suspend and resume webhooks by the present rights of their authors; one without an author stays.

    A webhook tells of every suite and site, so its author has to see all. Messages that wait for a suspended
    webhook are not sent.
    """
    hooks = list(Webhook.objects.exclude(author_name="").order_by("pk"))
    rights = rights_of([hook.acting for hook in hooks], MANAGE_WEBHOOKS)
    for hook in hooks:
        suspend(hook, _suspension(hook, rights.get(hook.acting)), now)
    suspended = [hook for hook in hooks if hook.suspended]
    if suspended:
        WebhookDelivery.objects.pending().filter(webhook__in=suspended).update(
            state=DeliveryState.DEAD, due_at=None, ended_at=now, error="not sent: the webhook is suspended"
        )


def _suspension(hook: Webhook, rights: AuthorRights | None) -> str:
    may_keep = rights is not None and rights.has(MANAGE_WEBHOOKS) and not rights.hidden_suites
    return "" if may_keep else lost_right(hook, rights)
