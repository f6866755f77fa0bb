"""Mail to users about their accounts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.mail import send_mail

if TYPE_CHECKING:
    from django.contrib.auth.models import User

logger = logging.getLogger(__name__)


def is_possible(user: User) -> bool:
    """Return whether *user* has an address, and the service a mail server (``GRIDCAST_EMAIL_URL``)."""
    return bool(user.email and settings.EMAIL_HOST)


def send(user: User, subject: str, text: str) -> None:
    """Send *text* to *user*, if that is possible; the log says if the mail server refuses it."""
    if not is_possible(user):
        return
    try:
        send_mail(subject, f"{text}\n\n{settings.GRIDCAST_URL}\n", None, [user.email])
    except OSError as error:  # smtplib's errors are OSErrors
        logger.warning("cannot mail user %r: %s", user.get_username(), error)
