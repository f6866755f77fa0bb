"""Define webhooks: validated, by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from django.db import models, transaction

from monitor.analysis.webhooks import destination
from monitor.analysis.webhooks.destination import InvalidUrl
from monitor.analysis.webhooks.signature import VARIABLES
from monitor.depot.access.audit_trail import note
from monitor.models import Site, Suite, Webhook, WebhookReceiver
from monitor.models.author import by
from monitor.models.run_feed import WEBHOOKS
from monitor.models.webhook import SUBSCRIBABLE, EventType
from monitor.runs.ledger import ended_runs

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

Row = TypeVar("Row", bound=models.Model)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
_MOST_URL = 2000


class InvalidWebhook(Exception):
    """Values of a webhook are unusable; *problems* are messages by field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems.items()))
        self.problems = problems


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


def define_webhook(
    definition: WebhookDefinition, *, author: AbstractBaseUser | AnonymousUser, now: datetime
) -> tuple[Webhook, bool]:
    """Create or replace the webhook of the definition's name; return it, and whether it is new.

    It acts with the rights of *author* from then on.

    Raises:
        InvalidWebhook: nothing was changed.
    """
    unusable = dict(problems(definition))
    suites, no_suites = _named(Suite.objects.all(), "suites", definition.suites)
    sites, no_sites = _named(Site.objects.all(), "sites", definition.sites)
    if unusable := {**unusable, **no_suites, **no_sites}:
        raise InvalidWebhook(unusable)
    who = author.get_username()
    with transaction.atomic():
        fields = {
            **by(author),
            "url": definition.url,
            "secret_variable": definition.secret_variable,
            "events": sorted(set(definition.events)),
            "enabled": definition.enabled,
        }
        known = Webhook.objects.filter(name=definition.name).first()
        before = definition_of(known) if known else None
        hook, is_new = Webhook.objects.update_or_create(
            name=definition.name,
            defaults=fields,
            create_defaults={**fields, "created_at": now, "created_by": who[:150]},
        )
        hook.suites.set(suites)
        hook.sites.set(sites)
        follow_runs()
    note("webhook", hook.name, before=noted(before) if before else None, after=noted(definition))
    return hook, is_new


def definition_of(hook: Webhook) -> WebhookDefinition:
    """Return the definition of *hook*, with sorted names."""
    return WebhookDefinition(
        hook.name,
        url=hook.url,
        events=tuple(sorted(hook.events)),
        secret_variable=hook.secret_variable,
        suites=tuple(sorted(suite.name for suite in hook.suites.all())),
        sites=tuple(sorted(site.name for site in hook.sites.all())),
        enabled=hook.enabled,
    )


def delete_webhook(hook: Webhook) -> None:
    """Delete *hook* with the record of its deliveries; messages that wait are not sent."""
    before = definition_of(hook)
    hook.delete()
    follow_runs()
    note("webhook", hook.name, before=noted(before))


def noted(definition: WebhookDefinition) -> dict[str, object]:
    """Return *definition* for the audit record: without the path of its URL, which may be a secret."""
    return {**asdict(definition), "url": destination.parse(definition.url).origin}


def follow_runs() -> None:
    """Have ended runs kept for webhooks, if one of them receives runs. Called after each change of webhooks.

    A receiver that was gone gets messages again if its webhook was enabled again.
    """
    WebhookReceiver.objects.welcome(Webhook.objects.filter(enabled=True).values_list("url", flat=True))
    receivers = Webhook.objects.in_force().filter(events__contains=[EventType.RUN_ENDED])
    ended_runs.subscribe(WEBHOOKS, is_wanted=receivers.exists())


def problems(definition: WebhookDefinition) -> Iterator[tuple[str, str]]:
    """Yield field and message of each unusable value; whether suites and sites exist is not checked."""
    if not _NAME.fullmatch(definition.name):
        yield "name", f"expected 1 to 50 letters, digits, _ and -, got {definition.name[:60]!r}"
    if len(definition.url) > _MOST_URL:
        yield "url", f"expected at most {_MOST_URL} characters, got {len(definition.url)}"
    else:
        try:
            destination.parse(definition.url)
        except InvalidUrl as error:
            yield "url", str(error)
    variable = definition.secret_variable
    if variable and (not VARIABLES.fullmatch(variable) or len(variable) > 100):
        yield "secret_variable", f"expected a name such as GRIDCAST_WEBHOOK_SECRET, got {variable[:110]!r}"
    if not definition.events or not set(definition.events) <= set(SUBSCRIBABLE):
        known = ", ".join(SUBSCRIBABLE)
        yield "events", f"expected some of {known}, got {', '.join(definition.events)[:200]!r}"


def _named(
    rows: models.QuerySet[Row], noun: str, names: Collection[str]
) -> tuple[list[Row], Mapping[str, str]]:
    """Return the rows of these *names*, and the problem with the field *noun*, if it names others."""
    found = list(rows.filter(name__in=names))
    missing = set(names) - {str(row) for row in found}
    if missing:
        return found, {noun: f"there is no {noun[:-1]} {min(missing)[:100]!r}"}
    return found, {}
