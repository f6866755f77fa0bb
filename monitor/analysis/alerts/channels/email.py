"""Mail, sent through the server in ``GRIDCAST_EMAIL_URL``."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email

from monitor.analysis.alerts.channels.base import InvalidOptions, Message, NotDelivered


class Notifier:
    """Sends one mail to all addresses in the option *to*."""

    option_types: ClassVar[Mapping[str, str]] = {"to": "Sequence[str]"}

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._to = list(options.get("to", ()))
        if not self._to:
            raise InvalidOptions("expected at least one address, such as [ada@example.org]", "to")
        for address in self._to:
            try:
                validate_email(address)
            except ValidationError:
                raise InvalidOptions(f"expected an address, got {address!r}", "to") from None

    def send(self, message: Message) -> None:
        server = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
        if not settings.EMAIL_HOST:
            raise NotDelivered("no mail server: GRIDCAST_EMAIL_URL is not set")
        headers = {"Message-ID": f"<{message.id}@gridcast>", "Auto-Submitted": "auto-generated"}
        mail = EmailMessage(message.subject, message.body, to=self._to, headers=headers)
        try:
            mail.send()
        except smtplib.SMTPRecipientsRefused as error:
            refused = "; ".join(
                f"{address}: {code} {reason.decode(errors='replace')}"
                for address, (code, reason) in error.recipients.items()
            )
            raise NotDelivered(f"{server} refused {refused}") from None
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(f"cannot send mail to {server}: {error}") from None
