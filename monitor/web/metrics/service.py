"""Metrics of the service itself: database, broker, heartbeats, runs that wait, space, alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Count, Q
from redis.exceptions import RedisError

from monitor.celery import app
from monitor.core.counters import counters
from monitor.health import supervised
from monitor.models import Alert, EndedRun, Heartbeat, Notification, Run, Webhook, WebhookDelivery
from monitor.models.run import IN_FLIGHT, State
from monitor.models.webhook import DeliveryState
from monitor.runs.ingest.disk_guard import gauge
from monitor.runs.ledger.heartbeats import HOME_REPORTER
from monitor.web.metrics import definitions as of
from monitor.web.metrics import service_sql
from monitor.web.metrics.text_format import Family
from reporters.remote import VERSION

if TYPE_CHECKING:
    from monitor.web.metrics.definitions import MetricDefinition
    from monitor.web.metrics.scope import ScrapeScope

QUEUES = (app.conf.task_default_queue, HOME_REPORTER)


def collect(scope: ScrapeScope) -> Iterator[Family]:
    yield _single(of.DEPOT_UP, 1)
    yield from _heartbeats()
    yield from _runs(scope)
    yield from _depot()
    yield from _alerts(scope)
    yield from _followers()


def collect_without_depot() -> Iterator[Family]:
    """Yield what is known without the database."""
    yield _by_label(of.BUILD, {VERSION: 1})
    yield from _supervised()
    yield from _broker()


def _single(definition: MetricDefinition, value: float) -> Family:
    family = Family(definition)
    family.add(value)
    return family


def _by_label(definition: MetricDefinition, values: Mapping[str, float]) -> Family:
    family = Family(definition)
    for label, value in values.items():
        family.add(value, label)
    return family


def _heartbeats() -> Iterator[Family]:
    rows = Heartbeat.objects.values_list("name", "seen_at")
    yield _by_label(of.HEARTBEAT, {name: seen_at.timestamp() for name, seen_at in rows})


def _supervised() -> Iterator[Family]:
    services = supervised()
    yield _by_label(of.SERVICE_UP, {name: each.state == "up" for name, each in services.items()})
    yield _by_label(of.SERVICE_RESTARTS, {name: each.restarts for name, each in services.items()})


def _broker() -> Iterator[Family]:
    try:
        lengths = {queue: counters.client().llen(queue) for queue in QUEUES}
    except RedisError:
        yield _single(of.BROKER_UP, 0)
        return
    yield _single(of.BROKER_UP, 1)
    yield _by_label(of.QUEUE_TASKS, lengths)


def _runs(scope: ScrapeScope) -> Iterator[Family]:
    late = scope.now - timedelta(seconds=settings.GRIDCAST_GRACE_SECONDS)
    due = Run.objects.filter(state=State.EXPECTED, due_at__lte=scope.now)
    reporters: dict[str, Any] = dict.fromkeys(scope.reporters().values_list("name", flat=True), 0)
    for definition, runs in (
        (of.RUNS_DUE, due),
        (of.RUNS_LATE, due.filter(due_at__lte=late)),
        (of.RUNS_IN_FLIGHT, Run.objects.filter(state__in=IN_FLIGHT)),
    ):
        rows = runs.order_by().values_list("series__reporter__name").annotate(Count("pk"))
        counts = {name: count for name, count in rows if name in reporters}
        yield _by_label(definition, reporters | counts)


def _depot() -> Iterator[Family]:
    yield _single(of.DEPOT_SIZE, service_sql.depot_bytes())
    if (space := gauge.space()) is not None:
        yield _single(of.DEPOT_FREE, max(space.free_bytes, 0))
        yield _single(of.DEPOT_RESERVE, space.reserve_bytes)
    yield _single(of.DIRTY_HOURS, service_sql.dirty_hours())


def _alerts(scope: ScrapeScope) -> Iterator[Family]:
    user = scope.request.user
    is_open = Alert.objects.open()
    visible = is_open.filter(series__in=scope.series()) if user is None else is_open.visible_to(user)
    counts = visible.aggregate(
        true=Count("pk", filter=Q(acknowledged_at__isnull=False)),
        false=Count("pk", filter=Q(acknowledged_at=None)),
    )
    yield _by_label(of.ALERTS_OPEN, counts)
    messages: Mapping[str, Callable[[], int]] = {
        "pending": Notification.objects.pending().count,
        "given_up": Notification.objects.filter(due_at=None, sent_at=None, withheld="").count,
    }
    yield _by_label(of.NOTIFICATIONS, {state: count() for state, count in messages.items()})


def _followers() -> Iterator[Family]:
    """Yield what webhooks and traces still have to tell."""
    deliveries, waiting = Family(of.DELIVERIES), Family(of.RUNS_FED)
    states = DeliveryState.PENDING, DeliveryState.DEAD
    rows = WebhookDelivery.objects.filter(state__in=states).order_by().values_list("webhook", "state")
    counts = {(hook, state): number for hook, state, number in rows.annotate(Count("pk"))}
    for hook, name in Webhook.objects.values_list("pk", "name"):
        for state in states:
            deliveries.add(counts.get((hook, state), 0), name, state)
    fed = EndedRun.objects.order_by().values_list("subscriber").annotate(Count("pk"))
    for subscriber, number in fed:
        waiting.add(number, subscriber)
    yield from (deliveries, waiting)
