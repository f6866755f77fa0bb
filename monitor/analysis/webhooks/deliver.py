"""Deliver messages to webhooks: in order, at least once, and in at most ``MAX_ATTEMPTS`` attempts.

The messages of a webhook are sent one after the other, the oldest first. A message that is not accepted holds
back the later ones until it is accepted or dead, so that a receiver that was away loses as little as
possible. Webhooks do not wait for each other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import NamedTuple

from monitor.analysis.webhooks import destination, signature
from monitor.analysis.webhooks.authors import judge_authors
from monitor.analysis.webhooks.destination import InvalidUrl
from monitor.analysis.webhooks.enqueue import enqueue_ended_runs
from monitor.analysis.webhooks.post import NotAccepted, Poster
from monitor.analysis.webhooks.receivers import disable_gone, obey
from monitor.analysis.webhooks.signature import InvalidSecret
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.core.egress.backoff import pause_after
from monitor.models import WebhookDelivery, WebhookReceiver
from monitor.models.webhook import DeliveryState

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 7  # all attempts take eleven hours
MAX_REFUSALS = 3  # attempts of a message that the receiver answers with 4xx: it will not like it later
_TEMPORARY = frozenset({408, 425, 429})  # of 4xx
AT_ONCE = 8  # webhooks
MOST = 50  # messages of one webhook in a row
BUSY_SECONDS = 30.0  # one task delivers for this long, the next task the rest
KEEP_DELIVERED, KEEP_DEAD = timedelta(days=7), timedelta(days=30)


class DeliveryAttempt(NamedTuple):
    """An attempt to deliver a message; *error* is empty if the receiver has accepted it.

    *refusal* is the receiver's answer; None if it has accepted the message, or has not answered.
    """

    delivery: WebhookDelivery
    error: str
    refusal: NotAccepted | None = None


def deliver_webhooks(now: datetime, poster: Poster | None = None) -> int:
    """Enqueue events and deliver due messages; return how many were attempted.

    No transaction is open while messages are sent. If the worker dies, the messages are sent again.
    """
    attempted, until = 0, time.monotonic() + BUSY_SECONDS
    with session_lock(AdvisoryLock.WEBHOOKS) as is_ours:
        while is_ours and time.monotonic() < until:
            judge_authors(now)
            handled = enqueue_ended_runs(now)
            attempts = _deliver_round(now, poster or Poster())
            for attempt in attempts:
                _record(attempt, now)
            attempted += len(attempts)
            if not handled and not attempts:
                break
    return attempted


def redeliver(delivery: WebhookDelivery, now: datetime) -> None:
    """Send a delivered or dead message again, with the same id, before the messages that came later."""
    rows = WebhookDelivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.PENDING)
    rows.update(state=DeliveryState.PENDING, due_at=now, ended_at=None, attempts=0, error="")


def prune_deliveries(now: datetime) -> int:
    """Delete the record of messages that were delivered or given up long ago; return their number."""
    WebhookReceiver.objects.filter(gone_at=None, resume_at__lt=now).delete()
    ended = WebhookDelivery.objects.filter(ended_at__lt=now - KEEP_DELIVERED)
    too_old = WebhookDelivery.objects.filter(ended_at__lt=now - KEEP_DEAD)
    return ended.filter(state=DeliveryState.DELIVERED).delete()[0] + too_old.delete()[0]


def _deliver_round(now: datetime, poster: Poster) -> list[DeliveryAttempt]:
    """Send the due messages of up to ``AT_ONCE`` webhooks at the same time, in order for each of them."""
    heads: dict[str, WebhookDelivery] = {}
    for head in WebhookDelivery.objects.due(now).select_related("webhook").order_by("due_at"):
        # One webhook of each receiver in a round: a pause that its answer asks for holds for the others.
        heads.setdefault(head.webhook.url, head)
    queues = [_queue(head, now) for head in list(heads.values())[:AT_ONCE]]
    if not queues:
        return []
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="webhook") as threads:
        return [
            attempt for sent in threads.map(lambda queue: _send(queue, poster), queues) for attempt in sent
        ]


def _queue(head: WebhookDelivery, now: datetime) -> list[WebhookDelivery]:
    pending = WebhookDelivery.objects.pending().filter(webhook=head.webhook_id, pk__gte=head.pk)
    return list(pending.filter(due_at__lte=now).select_related("webhook").order_by("pk")[:MOST])


def _send(queue: Sequence[WebhookDelivery], poster: Poster) -> list[DeliveryAttempt]:
    """Send the messages of one webhook until one is not accepted. Uses no database: it runs in a thread."""
    attempts: list[DeliveryAttempt] = []
    for delivery in queue:
        attempts.append(_attempt(delivery, poster))
        if attempts[-1].error:
            break
    return attempts


def _attempt(delivery: WebhookDelivery, poster: Poster) -> DeliveryAttempt:
    hook = delivery.webhook
    try:
        keys = signature.secrets_in(hook.secret_variable) if hook.secret_variable else []
        poster.post(destination.parse(hook.url), delivery.message, delivery.body.encode(), keys)
    except NotAccepted as error:
        return DeliveryAttempt(delivery, str(error), error)
    except (InvalidUrl, InvalidSecret) as error:
        return DeliveryAttempt(delivery, str(error))
    except Exception as error:  # noqa: BLE001 - one message must not stop the others
        return DeliveryAttempt(delivery, f"{type(error).__name__}: {error}")
    return DeliveryAttempt(delivery, "")


def _record(attempt: DeliveryAttempt, now: datetime) -> None:
    delivery, error, refusal = attempt
    row = WebhookDelivery.objects.filter(pk=delivery.pk)
    attempts = delivery.attempts + 1
    if not error:
        row.update(state=DeliveryState.DELIVERED, attempts=attempts, error="", due_at=None, ended_at=now)
        return
    if refusal is not None and refusal.is_gone:
        row.update(attempts=attempts, error=error, due_at=now + pause_after(attempts))
        disable_gone(delivery.webhook, error, now)
        return
    wait = pause_after(attempts)
    if refusal is not None and refusal.retry_seconds is not None:
        resume_at = obey(delivery.webhook.url, refusal.retry_seconds, error, now)
        wait = max(wait, resume_at - now)
    status = refusal.status if refusal is not None else None
    is_refusal = status is not None and 400 <= status < 500 and status not in _TEMPORARY
    is_dead = attempts >= (MAX_REFUSALS if is_refusal else MAX_ATTEMPTS)
    logger.warning("cannot deliver %s (%s): %s", delivery, "given up" if is_dead else "retried later", error)
    if is_dead:
        row.update(state=DeliveryState.DEAD, attempts=attempts, error=error, due_at=None, ended_at=now)
    else:
        row.update(attempts=attempts, error=error, due_at=now + wait)
