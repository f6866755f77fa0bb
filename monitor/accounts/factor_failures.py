"""Second factors that failed after a right password: the user is told at the next login, and by mail.

Another person knows the password then. What is counted lies in Valkey, as failed logins do.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.cache import cache
from django.utils import timezone

from monitor.accounts import mail
from monitor.web.client_address import client_address

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

KEPT_SECONDS = 30 * 24 * 3600
MAIL_PAUSE_SECONDS = 3600
MAIL_IS_OF_USE = timedelta(days=3)


def note_failure(request: HttpRequest, user: User) -> None:
    """Note that a second factor of *user*, whose password was right, has just failed; mail once an hour.

    A user that is logged in confirms something, and is no other person.
    """
    if request.user.is_authenticated:
        return
    key, address, now = _key(user), client_address(request) or "a Unix socket", timezone.now()
    at = f"{now:%Y-%m-%d %H:%M} UTC"
    cache.set(key, {"at": at, "address": address}, KEPT_SECONDS)
    with suppress(ValueError):  # told at this moment
        cache.add(f"{key}:count", 0, KEPT_SECONDS)
        cache.incr(f"{key}:count")
    if mail.is_possible(user) and cache.add(f"{key}:mailed", 1, MAIL_PAUSE_SECONDS):
        text = (
            f"The password of your account {user} was right, and the second factor was not: at {at},"
            f" from {address}. If it was not you, change the password."
        )
        mail.enqueue(user, "gridcast: a second factor failed", text, now, until=now + MAIL_IS_OF_USE)


def tell(request: HttpRequest, user: User) -> None:
    """Show *user* what was noted since the last login, after one that has succeeded."""
    key = _key(user)
    count, noted = cache.get(f"{key}:count"), cache.get(key)
    if count is None or noted is None:
        return
    cache.delete(f"{key}:count")
    cache.delete(key)
    times = "once" if count == 1 else f"{count} times"
    messages.warning(
        request,
        f"Your password was right and the second factor was not, {times} since your last login; the last time"
        f" at {noted['at']}, from {noted['address']}. If it was not you, change the password.",
    )


def _key(user: User) -> str:
    return f"failed-factor:{user.pk}"
