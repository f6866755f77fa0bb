"""The provider's discovery document and keys: stored, refreshed beside requests, served while it is away.

What was asked and what came of it is stored in transactions of its own: within that of a request, others
would wait for its lock as long as the provider is asked, and a refused request would take it back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from monitor.models.provider_metadata import ProviderMetadata
from monitor.web.accounts.provider.documents import Discovery, KeySet, parse, parse_discovery, parse_object
from monitor.web.accounts.provider.exchange import fetch, waiting_place
from monitor.web.accounts.provider.faults import ProviderFault, ProviderUnreachable, ProviderUnusable

logger = logging.getLogger(__name__)
VALID = timedelta(minutes=10)  # then they are fetched again
KEYS_PAUSE = timedelta(seconds=30)  # between two fetches of the keys because of a token
FAILURE_PAUSE = timedelta(seconds=5)  # in which no other visitor tries what has failed at the first start
_KEYS = "keys"


@dataclass(frozen=True)
class PublishedMetadata:
    discovery: Discovery
    keys: KeySet


def _is_recent(field: str, pause: timedelta, now: datetime) -> Q:
    """Return the condition that the time *field* is less than *pause* from *now*.

    A time further ahead was stored by a clock that was wrong: the pause would last until then.
    """
    return Q(**{f"{field}__gt": now - pause, f"{field}__lt": now + pause})


def published_metadata(issuer: str, now: datetime) -> PublishedMetadata:
    """Return what *issuer* publishes: from the depot; before the first success, from the provider.

    A page that calls it with POST is in ``ASKS_PROVIDER`` of ``monitor.web.pages.http.audit``.

    Raises:
        ProviderFault: the depot has nothing, and the provider nothing usable.
    """
    if (stored := stored_metadata(issuer)) is not None:
        return stored
    failed = ProviderMetadata.objects.filter(_is_recent("failed_at", FAILURE_PAUSE, now), issuer=issuer)
    if (row := failed.first()) is not None:
        kind = ProviderUnreachable if row.is_unreachable else ProviderUnusable
        raise kind(f"{row.fault} (a moment ago)")
    with waiting_place():
        return fetch_metadata(issuer, now)


def stored_metadata(issuer: str) -> PublishedMetadata | None:
    """Return what *issuer* published when it was last asked; None before the first success."""
    row = ProviderMetadata.objects.filter(issuer=issuer).exclude(discovery="").first()
    return None if row is None else _parsed(row)


def refresh_metadata(issuer: str, now: datetime) -> bool:
    """Fetch what *issuer* publishes if that is due; return whether it was fetched. A fault is logged."""
    ProviderMetadata.objects.exclude(issuer=issuer).delete()
    if ProviderMetadata.objects.filter(_is_recent("fetched_at", VALID, now), issuer=issuer).exists():
        return False
    try:
        fetch_metadata(issuer, now)
    except ProviderFault as error:
        logger.warning("cannot refresh the metadata of the identity provider: %s", error)
        return False
    return True


def fetch_metadata(issuer: str, now: datetime) -> PublishedMetadata:
    """Fetch and store what *issuer* publishes; a failure is stored beside what was stored before.

    Raises:
        ProviderFault: the provider gives nothing usable.
    """
    try:
        text = fetch(f"{issuer.removesuffix('/')}/.well-known/openid-configuration", "discovery document")
        discovery = parse_discovery(text, issuer)
        keys = _fetch_keys(discovery)
    except ProviderFault as error:
        is_unreachable = isinstance(error, ProviderUnreachable)
        failure = {"failed_at": now, "fault": str(error), "is_unreachable": is_unreachable}
        _store(issuer, failure)
        raise
    success = {
        "discovery": discovery.model_dump_json(),
        "keys": keys.model_dump_json(),
        "fetched_at": now,
        "failed_at": None,
        "fault": "",
    }
    _store(issuer, success)
    return PublishedMetadata(discovery, keys)


@transaction.atomic(durable=True)
def _store(issuer: str, values: Mapping[str, Any]) -> None:
    ProviderMetadata.objects.update_or_create(issuer=issuer, defaults=values)


def newer_keys(issuer: str, now: datetime, place: AbstractContextManager[None]) -> KeySet:
    """Return the keys of *issuer* for a token whose key is unknown: fetched, unless they just were.

    *place* is held while they are fetched: a waiting place, unless the thread has one.

    Raises:
        ProviderFault: the provider gives no usable keys.
    """
    rows = ProviderMetadata.objects.filter(issuer=issuer)
    due = rows.exclude(_is_recent("keys_asked_at", KEYS_PAUSE, now))
    stored = _parsed(rows.get())
    if not due.exists():
        return stored.keys
    with place:
        with transaction.atomic(durable=True):
            is_ours = bool(due.update(keys_asked_at=now))
        if not is_ours:
            return stored.keys
        keys = _fetch_keys(stored.discovery)
        rows.update(keys=keys.model_dump_json())
        return keys


def _fetch_keys(discovery: Discovery) -> KeySet:
    return parse(KeySet, parse_object(fetch(discovery.jwks_uri, _KEYS), _KEYS), _KEYS)


def _parsed(row: ProviderMetadata) -> PublishedMetadata:
    return PublishedMetadata(
        parse_discovery(row.discovery.encode(), row.issuer),
        parse(KeySet, parse_object(row.keys.encode(), _KEYS), _KEYS),
    )
