"""Second factors that failed after a right password: the user is told at the next login, and by mail.

Another person knows the password then. What is counted lies in Valkey, as failed logins do.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.core.mail import send_mail
from django.utils import timezone

from monitor.web.client_address import client_address

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

logger = logging.getLogger(__name__)
KEPT_SECONDS = 30 * 24 * 3600
MAIL_PAUSE_SECONDS = 3600


def note_failure(request: HttpRequest, user: User) -> None:
    """Note that a second factor of *user*, whose password was right, has just failed; mail once an hour.

    A user that is logged in confirms something, and is no other person.
    """
    if request.user.is_authenticated:
        return
    key, address = _key(user), client_address(request) or "a Unix socket"
    before = cache.get(key) or {"count": 0}
    noted = {"count": before["count"] + 1, "at": f"{timezone.now():%Y-%m-%d %H:%M} UTC", "address": address}
    cache.set(key, noted, KEPT_SECONDS)
    if not (user.email and settings.EMAIL_HOST) or not cache.add(f"{key}:mailed", 1, MAIL_PAUSE_SECONDS):
        return
    text = (
        f"The password of your account {user} was right, and the second factor was not: at {noted['at']},"
        f" from {address}. If it was not you, change the password.\n\n{settings.GRIDCAST_URL}\n"
    )
    try:
        send_mail("gridcast: a second factor failed", text, None, [user.email])
    except OSError as error:  # smtplib's errors are OSErrors
        logger.warning("cannot mail user %r: %s", user.get_username(), error)


def tell(request: HttpRequest, user: User) -> None:
    """Show *user* what was noted since the last login, after one that has succeeded."""
    key = _key(user)
    noted = cache.get(key)
    if noted is None:
        return
    cache.delete(key)
    times = "once" if noted["count"] == 1 else f"{noted['count']} times"
    messages.warning(
        request,
        f"Your password was right and the second factor was not, {times} since your last login; the last time"
        f" at {noted['at']}, from {noted['address']}. If it was not you, change the password.",
    )


def _key(user: User) -> str:
    return f"failed-factor:{user.pk}"
