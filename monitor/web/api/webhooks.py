"""Webhooks: define them, test them, and follow and repeat their deliveries."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field, StringConstraints

from monitor.analysis.webhooks import define as definitions
from monitor.analysis.webhooks.define import InvalidWebhook, WebhookDefinition, define_webhook
from monitor.analysis.webhooks.deliver import redeliver
from monitor.analysis.webhooks.enqueue import ping
from monitor.analysis.webhooks.receivers import answers_of_gone, pauses_of
from monitor.models import Webhook, WebhookDelivery
from monitor.models.token import MANAGE
from monitor.models.webhook import DeliveryState, EventType
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_webhook_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Name, RowId

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["webhooks"])
MOST_NAMES = 1000
_UNKNOWN = {404: ["unknown_webhook"]}
_UNKNOWN_DELIVERY = {404: ["unknown_webhook", "unknown_delivery"]}
EventName = Literal["run.ended", "site.down", "site.up"]
HookName = Annotated[str, StringConstraints(pattern=r"^[-a-zA-Z0-9_]+$", max_length=50)]
_URL = Field(
    description="Where messages are posted; internal addresses are refused unless the server allows them.",
    examples=["https://hooks.example.org/gridcast"],
)
_SECRET = Field(
    "",
    description="The environment variable of the control worker with the secrets; empty: unsigned.",
    examples=["GRIDCAST_WEBHOOK_SECRET"],
)


class WebhookOut(Schema):
    """A receiver of signed messages about runs that end and sites that go down or come up."""

    name: str = Field(description="The name of the webhook.", examples=["ops"])
    url: str = _URL
    events: list[EventType] = Field(description="What it is told.", examples=[["run.ended"]])
    secret_variable: str = _SECRET
    suites: list[str] = Field(description="Only runs of these suites; empty: all.", examples=[["main"]])
    sites: list[str] = Field(description="Only what concerns these sites; empty: all.", examples=[["ncsa"]])
    enabled: bool = Field(description="Whether messages are enqueued and sent.", examples=[True])
    created_at: datetime = Field(description="When it was defined.", examples=["2026-03-01T12:00:00Z"])
    created_by: str = Field(description="The user who defined it.", examples=["ada"])
    author: str = Field(
        description="The user who saved it last, with whose present rights it acts; empty: a grid file.",
        examples=["ada"],
    )
    suspended: str = Field(
        description="Why the rights of its author do not permit it: it sends nothing; empty: they do.",
        examples=[""],
    )
    pending: int = Field(description="Messages that wait.", examples=[0])
    dead: int = Field(description="Messages that were given up.", examples=[0])
    waits_until: datetime | None = Field(
        description="Until when its receiver asks to wait (`Retry-After`); null: it does not.",
        examples=["2026-03-01T13:00:00Z"],
    )
    disabled_because: str = Field(
        description="The answer `410` of its receiver, which has disabled it, and when; else empty.",
        examples=[""],
    )


class WebhookList(ListOut):
    """A page of webhooks, by name."""

    webhooks: list[WebhookOut]


class WebhookIn(Body):
    """The definition of a webhook."""

    url: Annotated[str, StringConstraints(max_length=2000)] = _URL
    events: Annotated[list[EventName], Field(min_length=1, max_length=10)] = Field(
        description="What it is told: `run.ended`, `site.down`, `site.up`.",
        examples=[["site.down", "site.up"]],
    )
    secret_variable: Annotated[str, StringConstraints(max_length=100)] = _SECRET
    suites: Annotated[list[Name], Field(max_length=MOST_NAMES)] = Field(
        [], description="Only runs of these suites; empty: all.", examples=[["main"]]
    )
    sites: Annotated[list[Name], Field(max_length=MOST_NAMES)] = Field(
        [], description="Only what concerns these sites; empty: all.", examples=[["ncsa"]]
    )
    enabled: bool = Field(True, description="Whether messages are enqueued and sent.", examples=[True])


class DeliveryOut(Schema):
    """A message to a webhook, and what became of it."""

    id: int = Field(description="The number of the delivery.", examples=[4711])
    message: str = Field(
        description="The `webhook-id` that the receiver sees; the same in every attempt.",
        examples=["run-6d1c-7"],
    )
    event: EventType = Field(description="What it tells.", examples=["run.ended"])
    subject: str = Field(description="The series or the site.", examples=["gather-main"])
    state: DeliveryState = Field(
        description="`pending`, `delivered`, or `dead`: given up.", examples=["delivered"]
    )
    attempts: int = Field(description="Attempts so far.", examples=[1])
    error: str = Field(description="Why the last attempt failed.", examples=[""])
    created_at: datetime = Field(description="When it was enqueued.", examples=["2026-03-01T12:00:00Z"])
    due_at: datetime | None = Field(
        description="When it is sent next; null unless it is pending.", examples=["2026-03-01T12:00:30Z"]
    )
    ended_at: datetime | None = Field(
        description="When it was delivered or given up.", examples=["2026-03-01T12:00:01Z"]
    )
    body: dict[str, Any] = Field(description="The message.", examples=[{"type": "run.ended"}])


class DeliveryList(ListOut):
    """A page of deliveries, newest first."""

    deliveries: list[DeliveryOut]


class DeliveryQuery(Page):
    """The deliveries to list."""

    state: DeliveryState | None = Field(None, description="Their state.")


def _found(_request: HttpRequest, webhook: str) -> Webhook:
    hook = Webhook.objects.filter(name=webhook).first() if "\x00" not in webhook else None
    if hook is None:
        raise Refused(404, "unknown_webhook", f"there is no webhook {webhook!r}")
    return hook


def _found_delivery(request: HttpRequest, webhook: str, delivery: int) -> WebhookDelivery:
    found = WebhookDelivery.objects.filter(webhook=_found(request, webhook), pk=delivery).first()
    if found is None:
        raise Refused(404, "unknown_delivery", f"the webhook {webhook} has no delivery {delivery}")
    return found


_OF_HOOK: dict[str, Any] = {
    "scope": MANAGE,
    "errors": _UNKNOWN,
    "permission": require_webhook_permission,
    "subject": _found,
}
_OF_DELIVERY = {**_OF_HOOK, "errors": _UNKNOWN_DELIVERY, "subject": _found_delivery}


@router.get(
    "/webhooks",
    response=WebhookList,
    operation_id="list_webhooks",
    openapi_extra=declare(scope=MANAGE, permission=require_webhook_permission),
    summary="List webhooks",
)
def list_webhooks(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """Needs the permission to manage webhooks, as every operation on webhooks."""
    return list_rows(query, Webhook.objects.all(), WebhookList, order=["sort_name"], show=_shown)


@router.get(
    "/webhooks/{webhook}",
    response=WebhookOut,
    operation_id="show_webhook",
    openapi_extra=declare(**_OF_HOOK),
    summary="Show a webhook",
)
def show_webhook(request: HttpRequest, webhook: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return show_item(query, _shown(subject_of(request)), WebhookOut)


@router.put(
    "/webhooks/{webhook}",
    response={200: WebhookOut, 201: WebhookOut},
    operation_id="define_webhook",
    openapi_extra=declare(
        scope=MANAGE,
        permission=require_webhook_permission,
        example={"url": "https://hooks.example.org/gridcast", "events": ["site.down"]},
    ),
    summary="Create or replace a webhook",
)
def define(request: HttpRequest, webhook: HookName, order: WebhookIn) -> HttpResponse:
    """Messages that wait are sent to the new URL. 201 if the webhook is new."""
    definition = WebhookDefinition(webhook, **order.model_dump())
    try:
        hook, is_new = define_webhook(definition, author=request.user, now=timezone.now())
    except InvalidWebhook as error:
        raise Refused(422, "invalid", str(error)) from error
    status = 201 if is_new else 200
    return created(WebhookOut(**_shown(hook)), status=status, location=f"/webhooks/{hook.name}")


@router.delete(
    "/webhooks/{webhook}",
    response={204: None},
    operation_id="delete_webhook",
    openapi_extra=declare(**_OF_HOOK),
    summary="Delete a webhook with the record of its deliveries",
)
def delete_webhook(request: HttpRequest, webhook: str) -> HttpResponse:
    """Messages that wait are not sent."""
    definitions.delete_webhook(subject_of(request))
    return HttpResponse(status=204)


@router.post(
    "/webhooks/{webhook}/ping",
    response={202: DeliveryOut},
    operation_id="ping_webhook",
    openapi_extra=declare(**_OF_HOOK),
    summary="Send a message of the type webhook.ping, to test the receiver",
)
def ping_webhook(request: HttpRequest, webhook: str) -> HttpResponse:
    """It takes its place behind the messages that wait."""
    hook, now = subject_of(request), timezone.now()
    delivery = ping(hook, now)
    return _enqueued(hook.name, delivery)


@router.get(
    "/webhooks/{webhook}/deliveries",
    response=DeliveryList,
    operation_id="list_webhook_deliveries",
    openapi_extra=declare(**_OF_HOOK),
    summary="List the deliveries of a webhook, newest first",
)
def list_deliveries(request: HttpRequest, webhook: str, query: Query[DeliveryQuery]) -> HttpResponse:
    """Delivered messages are kept for 7 days, dead ones for 30."""
    rows = WebhookDelivery.objects.filter(webhook=subject_of(request))
    if query.state:
        rows = rows.filter(state=query.state)
    return list_rows(query, rows, DeliveryList, order=["-pk"], show=_fields)


@router.get(
    "/webhooks/{webhook}/deliveries/{delivery}",
    response=DeliveryOut,
    operation_id="show_webhook_delivery",
    openapi_extra=declare(**_OF_DELIVERY),
    summary="Show a delivery of a webhook",
)
def show_delivery(request: HttpRequest, webhook: str, delivery: RowId, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return show_item(query, _fields(subject_of(request)), DeliveryOut)


@router.post(
    "/webhooks/{webhook}/deliveries/{delivery}/redeliver",
    response={202: DeliveryOut},
    operation_id="redeliver_webhook_delivery",
    openapi_extra=declare(**_OF_DELIVERY),
    summary="Send a delivered or dead message again",
)
def redeliver_delivery(request: HttpRequest, webhook: str, delivery: RowId) -> HttpResponse:
    """It keeps its `webhook-id`, so a receiver can tell a repetition. A pending message stays as it is."""
    row = subject_of(request)
    redeliver(row, timezone.now())
    row.refresh_from_db()
    return _enqueued(webhook, row)


def _enqueued(webhook: str, delivery: WebhookDelivery) -> HttpResponse:
    location = f"/webhooks/{webhook}/deliveries/{delivery.pk}"
    return created(DeliveryOut(**_fields(delivery)), status=202, location=location)


def _shown(hook: Webhook) -> dict[str, Any]:
    plain = ("name", "url", "events", "secret_variable", "enabled", "created_at", "created_by", "suspended")
    return {
        **{name: getattr(hook, name) for name in plain},
        "author": hook.author_name,
        "suites": [suite.name for suite in hook.suites.order_by("sort_name")],
        "sites": [site.name for site in hook.sites.order_by("sort_name")],
        "pending": hook.deliveries.filter(state=DeliveryState.PENDING).count(),
        "dead": hook.deliveries.filter(state=DeliveryState.DEAD).count(),
        "waits_until": pauses_of([hook.url], timezone.now()).get(hook.url),
        "disabled_because": "" if hook.enabled else answers_of_gone([hook.url]).get(hook.url, ""),
    }


def _fields(delivery: WebhookDelivery) -> dict[str, Any]:
    plain = ("message", "event", "subject", "state", "attempts", "error", "created_at", "due_at", "ended_at")
    values = {name: getattr(delivery, name) for name in plain}
    return {"id": delivery.pk, **values, "body": json.loads(delivery.body)}
