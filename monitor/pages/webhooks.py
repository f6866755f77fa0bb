"""Webhooks and their deliveries: what waits, what was given up, and buttons to test and to repeat."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.models import Webhook, WebhookDelivery
from monitor.models.webhook import MANAGE_WEBHOOKS, DeliveryState
from monitor.pages.http.access import members_only
from monitor.pages.http.navigation import NavigationEntry, with_permission
from monitor.webhooks import destination
from monitor.webhooks.deliver import redeliver
from monitor.webhooks.enqueue import ping

MOST_DELIVERIES = 100


class ListedWebhook(NamedTuple):
    """A webhook, its URL without the path, which may be a secret, and how many messages wait or are dead."""

    webhook: Webhook
    origin: str
    pending: int
    dead: int


@members_only
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    """List webhooks, and the newest deliveries, of one webhook or state if the query string names it."""
    chosen = {name: request.GET.get(name, "").replace("\x00", "") for name in ("webhook", "state")}
    deliveries = WebhookDelivery.objects.select_related("webhook")
    if chosen["webhook"]:
        deliveries = deliveries.filter(webhook__name=chosen["webhook"])
    if chosen["state"] in DeliveryState.values:
        deliveries = deliveries.filter(state=chosen["state"])
    context = {
        "hooks": _listed(),
        "deliveries": deliveries[:MOST_DELIVERIES],
        "most_deliveries": MOST_DELIVERIES,
        "chosen": chosen,
        "states": DeliveryState.values,
        "now": timezone.now(),
    }
    return render(request, "pages/webhooks.html", context)


def _listed() -> list[ListedWebhook]:
    counts = WebhookDelivery.objects.order_by().values_list("webhook", "state").annotate(Count("pk"))
    numbers = {(hook, state): number for hook, state, number in counts}
    return [
        ListedWebhook(
            hook,
            destination.parse(hook.url).origin,
            numbers.get((hook.pk, DeliveryState.PENDING), 0),
            numbers.get((hook.pk, DeliveryState.DEAD), 0),
        )
        for hook in Webhook.objects.prefetch_related("suites", "sites")
    ]


@members_only
@require_POST
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
def test(request: HttpRequest, name: str) -> HttpResponse:
    hook, now = get_object_or_404(Webhook, name=name), timezone.now()
    ping(hook, int(now.timestamp() * 1_000_000), now)
    messages.success(request, f"A test message to {hook.name} is sent within seconds.")
    return redirect("webhooks")


@members_only
@require_POST
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
def repeat(request: HttpRequest, pk: int) -> HttpResponse:
    delivery = get_object_or_404(WebhookDelivery.objects.select_related("webhook"), pk=pk)
    redeliver(delivery, timezone.now())
    messages.success(request, f"{delivery} is sent again within seconds.")
    return redirect("webhooks")


entries = [NavigationEntry("Operations", "Webhooks", "webhooks", permits=with_permission(MANAGE_WEBHOOKS))]
urlpatterns = [
    path("webhooks/", page, name="webhooks"),
    path("webhooks/<slug:name>/test/", test, name="webhook-test"),
    path("webhooks/deliveries/<int:pk>/redeliver/", repeat, name="webhook-redeliver"),
]
