"""Put events into the queues of the webhooks that receive them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from monitor.models import Webhook, WebhookDelivery
from monitor.models.run_feed import WEBHOOKS
from monitor.models.webhook import DeliveryState, EventType
from monitor.runs.ledger import ended_runs
from reporters.report import rfc3339

if TYPE_CHECKING:
    from monitor.runs.ledger.ended_runs import EndedRunEvent

MOST_PENDING = 100_000  # of one webhook; further messages are dead at once


def enqueue_ended_runs(now: datetime) -> int:
    """Enqueue the oldest ended runs of the feed; return how many rows of the feed were handled."""
    hooks = _receivers(EventType.RUN_ENDED)
    ended_runs.subscribe(WEBHOOKS, is_wanted=bool(hooks))
    if not hooks:
        return 0
    with transaction.atomic():
        keys, events = ended_runs.next_events(WEBHOOKS, now)
        deliveries = [
            _delivery(
                hook, f"run-{event.run.pk}-{event.key}", _run_content(event), event.run.series.name, now
            )
            for event in events
            for hook, suites, sites in hooks
            if _concerns(event, suites, sites)
        ]
        enqueue(deliveries, now)
        ended_runs.forget(keys)
    return len(keys)


def enqueue(deliveries: Sequence[WebhookDelivery], now: datetime, most: int = MOST_PENDING) -> None:
    """Store *deliveries*; messages beyond *most* that wait for a webhook are stored as dead."""
    room: dict[int, int] = {}  # left in the queue of each webhook
    for delivery in deliveries:
        key = delivery.webhook_id
        if key not in room:
            room[key] = most - WebhookDelivery.objects.pending().filter(webhook=key).count()
        room[key] -= 1
        if room[key] < 0:
            delivery.state, delivery.due_at, delivery.ended_at = DeliveryState.DEAD, None, now
            delivery.error = f"{most:,} messages of the webhook wait already"
    WebhookDelivery.objects.bulk_create(deliveries, ignore_conflicts=True)


def site_deliveries(
    event: EventType, site: str, at: datetime, data: Mapping[str, Any], now: datetime
) -> list[WebhookDelivery]:
    """Return the messages that *site* went down or came up at *at*.

    A site may go down twice since the same time, if late reports have it up meanwhile: two messages.
    """
    content = {"type": event, "timestamp": rfc3339(at), "data": {"site": site, **data}}
    return [
        _delivery(hook, f"{event}-{uuid.uuid4()}", content, site, now)
        for hook, _, sites in _receivers(event)
        if not sites or site in sites
    ]


def ping(hook: Webhook, now: datetime) -> WebhookDelivery:
    """Enqueue and return a message that tells nothing, to test the receiver."""
    content = {"type": EventType.PING, "timestamp": rfc3339(now), "data": {"webhook": hook.name}}
    delivery = _delivery(hook, f"ping-{uuid.uuid4()}", content, hook.name, now)
    delivery.save()
    return delivery


def _receivers(event: EventType) -> list[tuple[Webhook, frozenset[str], frozenset[str]]]:
    """Return the webhooks in force that receive *event*, with the names of their suites and sites."""
    hooks = Webhook.objects.in_force().filter(events__contains=[event]).prefetch_related("suites", "sites")
    return [(hook, _names(hook.suites.all()), _names(hook.sites.all())) for hook in hooks]


def _names(rows: Iterable[Any]) -> frozenset[str]:
    return frozenset(row.name for row in rows)


def _concerns(event: EndedRunEvent, suites: frozenset[str], sites: frozenset[str]) -> bool:
    return (not suites or event.run.series.suite.name in suites) and (
        not sites or not sites.isdisjoint(event.sites)
    )


def _delivery(
    hook: Webhook, message: str, content: Mapping[str, Any], subject: str, now: datetime
) -> WebhookDelivery:
    return WebhookDelivery(
        webhook=hook,
        message=message,
        event=content["type"],
        subject=subject,
        body=json.dumps(content),
        created_at=now,
        due_at=now,
    )


def _run_content(event: EndedRunEvent) -> dict[str, Any]:
    run = event.run
    url = f"{settings.GRIDCAST_URL}{reverse('run', args=[run.pk])}" if settings.GRIDCAST_URL else ""
    data = {
        "id": str(run.pk),
        "series": run.series.name,
        "suite": run.series.suite.name,
        "sites": list(event.sites),
        "slot": rfc3339(run.slot),
        "state": event.state,
        "reason": run.reason,
        "stage": run.stage,
        "resource": run.failed_resource,
        "signature": run.signature.name if run.signature else None,
        "started_at": rfc3339(run.started_at) if run.started_at else None,
        "ended_at": rfc3339(run.ended_at) if run.ended_at else None,
        "seconds": run.seconds,
        "url": url,
    }
    return {"type": EventType.RUN_ENDED, "timestamp": rfc3339(event.at), "data": data}
