"""Second factors that failed after a right first step: the user is told at the next login, and by mail.

Another person knows the password then, or can log in at the provider. The counts lie in Valkey, as those of
failed logins do.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from allauth.account.internal.flows.login import get_authentication_records
from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.utils import timezone

from monitor.operations.web_server.client_address import client_address
from monitor.web.accounts import mail

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

KEPT_SECONDS = 30 * 24 * 3600
MAIL_PAUSE_SECONDS = 3600
MAIL_IS_OF_USE = timedelta(days=3)
# By the first step: what was right, and what helps. An account of the provider may have no password here.
PASSWORD, PROVIDER = "password", "provider"
_WORDS: Mapping[str, tuple[str, str]] = {
    PASSWORD: ("password", "change the password"),
    PROVIDER: ("login at {provider}", "secure your account there"),
}


def note_failure(request: HttpRequest, user: User) -> None:
    """Note that a second factor of *user*, whose first step was right, has just failed; mail once an hour.

    A user that is logged in confirms something, and is no other person.
    """
    if request.user.is_authenticated:
        return
    step = _first_step(request, user)
    key, address, now = _key(user, step), client_address(request) or "a Unix socket", timezone.now()
    at = f"{now:%Y-%m-%d %H:%M} UTC"
    cache.set(key, {"at": at, "address": address}, KEPT_SECONDS)
    with suppress(ValueError):  # told at this moment
        cache.add(f"{key}:count", 0, KEPT_SECONDS)
        cache.incr(f"{key}:count")
    if mail.is_possible(user) and cache.add(_key(user, "mailed"), 1, MAIL_PAUSE_SECONDS):
        right, remedy = _words(step)
        text = (
            f"The {right} of your account {user} was right, and the second factor was not: at {at},"
            f" from {address}. If it was not you, {remedy}."
        )
        mail.enqueue(user, "gridcast: a second factor failed", text, now, until=now + MAIL_IS_OF_USE)


def tell(request: HttpRequest, user: User) -> None:
    """Show *user* what was noted since the last login, after one that has succeeded."""
    for step in _WORDS:
        key = _key(user, step)
        count, noted = cache.get(f"{key}:count"), cache.get(key)
        if count is None or noted is None:
            continue
        cache.delete(f"{key}:count")
        cache.delete(key)
        times = "once" if count == 1 else f"{count} times"
        right, remedy = _words(step)
        messages.warning(
            request,
            f"Your {right} was right and the second factor was not, {times} since your last login; the last"
            f" time at {noted['at']}, from {noted['address']}. If it was not you, {remedy}.",
        )


def _first_step(request: HttpRequest, user: User) -> str:
    """Return the step with which the login of *request* began; it waits for its second factor."""
    steps = {record["method"] for record in get_authentication_records(request, user)}
    return PASSWORD if "password" in steps else PROVIDER


def _words(step: str) -> tuple[str, str]:
    right, remedy = _WORDS[step]
    provider = settings.GRIDCAST_IDENTITY_PROVIDER
    return right.format(provider=provider.name if provider else "the identity provider"), remedy


def _key(user: User, what: str) -> str:
    return f"failed-factor:{user.pk}:{what}"
