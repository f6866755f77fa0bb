"""Webhooks, defined by a form, and their deliveries: what waits, what was given up, tests and repetitions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from monitor.analysis.webhooks import destination, signature
from monitor.analysis.webhooks.define import WebhookDefinition
from monitor.analysis.webhooks.deliver import redeliver
from monitor.analysis.webhooks.enqueue import ping
from monitor.analysis.webhooks.receivers import answers_of_gone, pauses_of
from monitor.depot.access.audit_trail import note
from monitor.models import Site, Suite, Webhook, WebhookDelivery
from monitor.models.webhook import MANAGE_WEBHOOKS, DeliveryState
from monitor.operations.gridfile import entries as grid_entries
from monitor.operations.gridfile.webhook_entries import WebhookEntry
from monitor.web.pages.http import entry_form
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.entry_form import NAME
from monitor.web.pages.http.form_fields import model_fields
from monitor.web.pages.http.navigation import NavigationEntry, with_permission
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.read_form import accepts_form

MOST_DELIVERIES = 100


class ListedWebhook(NamedTuple):
    """A webhook, its URL without the path, which may be a secret, and how many messages wait or are dead.

    *waits_until* is what its receiver has asked for; *answer_of_gone* why the webhook was disabled.
    """

    webhook: Webhook
    origin: str
    pending: int
    dead: int
    waits_until: datetime | None
    answer_of_gone: str


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
    now = timezone.now()
    context = {
        "crumbs": crumbs_of("settings"),
        "hooks": compute(request, "receivers", lambda: _listed(now)),
        "deliveries": compute(request, "deliveries", lambda: list(deliveries[:MOST_DELIVERIES])),
        "most_deliveries": MOST_DELIVERIES,
        "chosen": chosen,
        "states": DeliveryState.values,
        "now": now,
    }
    return render(request, "pages/webhooks.html", context)


def _listed(now: datetime) -> list[ListedWebhook]:
    counts = WebhookDelivery.objects.order_by().values_list("webhook", "state").annotate(Count("pk"))
    numbers = {(hook, state): number for hook, state, number in counts}
    hooks = list(Webhook.objects.prefetch_related("suites", "sites"))
    pauses = pauses_of((hook.url for hook in hooks), now)
    answers = answers_of_gone(hook.url for hook in hooks if not hook.enabled)
    return [
        ListedWebhook(
            hook,
            destination.parse(hook.url).origin,
            numbers.get((hook.pk, DeliveryState.PENDING), 0),
            numbers.get((hook.pk, DeliveryState.DEAD), 0),
            pauses.get(hook.url),
            answers.get(hook.url, ""),
        )
        for hook in hooks
    ]


@members_only
@require_POST
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
def test(request: HttpRequest, name: str) -> HttpResponse:
    hook, now = get_object_or_404(Webhook, name=name), timezone.now()
    ping(hook, now)
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


@accepts_form(entry_form.most_bytes(WebhookEntry))
@members_only
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    return _edited(request, "")


@accepts_form(entry_form.most_bytes(WebhookEntry))
@members_only
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    return _edited(request, get_object_or_404(Webhook, name=name).name)


@accepts_form(entry_form.most_bytes(WebhookEntry))
@members_only
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    hook = get_object_or_404(Webhook, name=name)
    error = entry_form.remove(request, "webhooks", name) if request.method == "POST" else ""
    if request.method == "POST" and not error:
        messages.success(request, f"Webhook {name} is deleted.")
        return redirect("webhooks")

    def losses() -> list[str]:
        pending = hook.deliveries.filter(state=DeliveryState.PENDING).count()
        return [
            f"The record of its {hook.deliveries.count():,} deliveries.",
            f"{pending:,} messages that wait: they are not sent.",
        ]

    context = {
        "noun": "webhook",
        "name": name,
        "crumbs": crumbs_of("settings", "webhooks"),
        "list_url": "webhooks",
        "losses": compute(request, "losses", losses),
        "seen": entry_form.seen_token("webhooks", name),
        "error": error,
    }
    return render(request, "pages/settings_delete.html", context, status=409 if error else 200)


@members_only
@require_POST
@permission_required(MANAGE_WEBHOOKS, raise_exception=True)
def rotate(request: HttpRequest, name: str) -> HttpResponse:
    """Show a new secret of a webhook; only this answer contains it."""
    hook = get_object_or_404(Webhook, name=name)
    if not hook.secret_variable:
        messages.error(request, "Name the variable of the secret first.")
        return redirect("webhook-edit", name)
    note("webhook", name, after="a new secret was shown")
    return _secret(request, hook.name, hook.secret_variable, is_rotated=True)


def _edited(request: HttpRequest, name: str) -> HttpResponse:
    """Show or save the form of the webhook *name*; empty: a new one."""
    entry = grid_entries.as_entry("webhooks", grid_entries.find("webhooks", name)) if name else None
    names = {
        "suites": list(Suite.objects.visible_to(request.user).values_list("name", flat=True)),
        "sites": list(Site.objects.visible_to(request.user).values_list("name", flat=True)),
    }
    groups = {"secret_variable": "Signature", **dict.fromkeys(names, "Restrictions")}
    fields = [*([] if name else [NAME]), *model_fields(WebhookEntry, names, groups=groups)]
    crumbs = crumbs_of("settings", "webhooks")
    context: dict[str, Any] = {"crumbs": crumbs, "name": name, "entry": entry, "cancel": "webhooks"}
    if request.method != "POST":
        form = entry_form.opened("webhooks", fields, entry or {"enabled": True}, entry)
        return render(request, "pages/webhooks_form.html", {**context, "form": form})
    result = entry_form.submitted(request, "webhooks", name, fields)
    after = result.change.after if result.change else None
    if result.is_saved and isinstance(after, WebhookDefinition):
        if after.secret_variable and after.secret_variable != (entry or {}).get("secret_variable"):
            return _secret(request, after.name, after.secret_variable, is_rotated=False)
        messages.success(request, f"Webhook {after.name} {'changed' if name else 'defined'}.")
        return redirect("webhooks")
    context |= {"form": result.form, "submission": result}
    status = 409 if result.form.has_faults else 200
    return render(request, "pages/webhooks_form.html", context, status=status)


def _secret(request: HttpRequest, name: str, variable: str, *, is_rotated: bool) -> HttpResponse:
    context = {
        "name": name,
        "crumbs": [*crumbs_of("settings", "webhooks"), (name, reverse("webhook-edit", args=[name]))],
        "variable": variable,
        "secret": signature.new_secret(),
        "is_rotated": is_rotated,
    }
    return render(request, "pages/webhooks_secret.html", context)


_FORMS = ("webhook-new", "webhook-edit", "webhook-delete", "webhook-secret")

entries = [
    NavigationEntry(
        "Operations", "Webhooks", "webhooks", pages=_FORMS, permits=with_permission(MANAGE_WEBHOOKS)
    )
]
urlpatterns = [
    path("settings/webhooks/", page, name="webhooks"),
    path("settings/webhooks/new/", new, name="webhook-new"),
    path("settings/webhooks/edit/<slug:name>/", edit, name="webhook-edit"),
    path("settings/webhooks/delete/<slug:name>/", delete, name="webhook-delete"),
    path("settings/webhooks/secret/<slug:name>/", rotate, name="webhook-secret"),
    path("settings/webhooks/test/<slug:name>/", test, name="webhook-test"),
    path("settings/webhooks/redeliver/<int:pk>/", repeat, name="webhook-redeliver"),
]
