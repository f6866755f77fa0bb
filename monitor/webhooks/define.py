"""Define webhooks: validated, by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import models, transaction

from monitor.ledger import ended_runs
from monitor.models import Site, Suite, Webhook
from monitor.models.run_feed import WEBHOOKS
from monitor.models.webhook import SUBSCRIBABLE, EventType
from monitor.webhooks import destination
from monitor.webhooks.destination import InvalidUrl
from monitor.webhooks.signature import VARIABLES

Row = TypeVar("Row", bound=models.Model)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
_MOST_URL = 2000


class InvalidWebhook(Exception):
    """A value of a webhook is unusable; *field* names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


@dataclass(frozen=True)
class WebhookDefinition:
    """What a user says of a webhook; see ``Webhook``."""

    name: str
    url: str
    events: Sequence[str]
    secret_variable: str = ""
    suites: Sequence[str] = ()
    sites: Sequence[str] = ()
    enabled: bool = True


def define_webhook(definition: WebhookDefinition, *, who: str, now: datetime) -> tuple[Webhook, bool]:
    """Create or replace the webhook of the definition's name; return it, and whether it is new.

    Raises:
        InvalidWebhook: nothing was changed.
    """
    _check(definition)
    suites = _named(Suite.objects.all(), "suites", definition.suites)
    sites = _named(Site.objects.all(), "sites", definition.sites)
    fields = {
        "url": definition.url,
        "secret_variable": definition.secret_variable,
        "events": sorted(set(definition.events)),
        "enabled": definition.enabled,
    }
    with transaction.atomic():
        hook, is_new = Webhook.objects.update_or_create(
            name=definition.name,
            defaults=fields,
            create_defaults={**fields, "created_at": now, "created_by": who[:150]},
        )
        hook.suites.set(suites)
        hook.sites.set(sites)
        follow_runs()
    return hook, is_new


def follow_runs() -> None:
    """Have ended runs kept for webhooks, if one of them receives runs."""
    receivers = Webhook.objects.filter(enabled=True, events__contains=[EventType.RUN_ENDED])
    ended_runs.subscribe(WEBHOOKS, is_wanted=receivers.exists())


def _check(definition: WebhookDefinition) -> None:
    if not _NAME.fullmatch(definition.name):
        raise InvalidWebhook(
            "name", f"expected 1 to 50 letters, digits, _ and -, got {definition.name[:60]!r}"
        )
    if len(definition.url) > _MOST_URL:
        raise InvalidWebhook("url", f"expected at most {_MOST_URL} characters, got {len(definition.url)}")
    try:
        destination.parse(definition.url)
    except InvalidUrl as error:
        raise InvalidWebhook("url", str(error)) from None
    variable = definition.secret_variable
    if variable and (not VARIABLES.fullmatch(variable) or len(variable) > 100):
        raise InvalidWebhook(
            "secret_variable", f"expected a name such as GRIDCAST_WEBHOOK_SECRET, got {variable[:110]!r}"
        )
    if not definition.events or not set(definition.events) <= set(SUBSCRIBABLE):
        known = ", ".join(SUBSCRIBABLE)
        raise InvalidWebhook(
            "events", f"expected some of {known}, got {', '.join(definition.events)[:200]!r}"
        )


def _named(rows: models.QuerySet[Row], noun: str, names: Collection[str]) -> list[Row]:
    found = list(rows.filter(name__in=names))
    missing = set(names) - {str(row) for row in found}
    if missing:
        raise InvalidWebhook(noun, f"there is no {noun[:-1]} {min(missing)[:100]!r}")
    return found
