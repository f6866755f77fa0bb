"""Mail to users about their accounts: stored with what it tells of, and sent by the control worker.

A request never asks the mail server: it may hang, and the request holds locks. A mail is sent at least once,
as long as it is of use.
"""

from __future__ import annotations

import logging
import smtplib
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F

from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.core.egress.backoff import pause_after
from monitor.models import AccountMail
from monitor.models.account_mail import LONGEST_PAUSE

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

logger = logging.getLogger(__name__)
BUSY_SECONDS = 30.0  # one task delivers for this long, the next task the rest
PERMANENT = 500  # the lowest code of SMTP with which a server refuses for good
# The mail server has answered about one mail: it may accept the others.
_OF_ONE_MAIL = (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, smtplib.SMTPDataError)


def is_possible(user: User) -> bool:
    """Return whether *user* has an address, and the service a mail server (``GRIDCAST_EMAIL_URL``)."""
    return bool(user.email and settings.EMAIL_HOST)


def enqueue(user: User, subject: str, text: str, now: datetime, *, until: datetime) -> None:
    """Store a mail to *user*, if that is possible; after *until*, it is not sent any more."""
    if is_possible(user):
        AccountMail.objects.create(user=user, subject=subject, text=text, due_at=now, until=until)


def deliver_due(now: datetime) -> int:
    """Send the mails that are due; return how many were attempted.

    No transaction is open while a mail is sent. If the worker dies, the mail is due again after a pause.
    """
    attempted, end = 0, time.monotonic() + BUSY_SECONDS
    with session_lock(AdvisoryLock.ACCOUNT_MAIL) as is_ours:
        while is_ours and time.monotonic() < end and (mail := _claim(now)) is not None:
            attempted += 1
            _attempt(mail, now)
    return attempted


@transaction.atomic
def _claim(now: datetime) -> AccountMail | None:
    """Return a mail that is due, and postpone it; delete those that are of no use any more."""
    for useless in AccountMail.objects.filter(until__lte=now).select_related("user"):
        logger.warning("cannot deliver %s: given up", useless)
        useless.delete()
    # In no order: a mail because of which the server hangs must not hold back the others again and again.
    mail = AccountMail.objects.due(now).select_related("user").order_by("?").first()
    if mail is not None:
        mail.attempts += 1
        mail.due_at = now + pause_after(mail.attempts, longest=LONGEST_PAUSE)
        AccountMail.objects.filter(pk=mail.pk).update(attempts=mail.attempts, due_at=mail.due_at)
    return mail


def _attempt(mail: AccountMail, now: datetime) -> None:
    """Send *mail*; where the mail server is away or hangs, the others wait as well."""
    row, text = AccountMail.objects.filter(pk=mail.pk), f"{mail.text}\n\n{settings.GRIDCAST_URL}\n"
    try:
        send_mail(mail.subject, text, None, [mail.user.email])
    except smtplib.SMTPRecipientsRefused as error:
        is_final = all(code >= PERMANENT for code, _ in error.recipients.values())
        logger.warning("cannot deliver %s (%s): %s", mail, "given up" if is_final else "retried later", error)
        if is_final:
            row.delete()
    except Exception as error:  # noqa: BLE001  # one mail must not stop the others
        logger.warning("cannot deliver %s (retried later): %s: %s", mail, type(error).__name__, error)
        if isinstance(error, OSError) and not isinstance(error, _OF_ONE_MAIL):
            AccountMail.objects.due(now).update(attempts=F("attempts") + 1, due_at=mail.due_at)
    else:
        row.delete()
