"""The outgoing mail server, which ``GRIDCAST_EMAIL_URL`` names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from monitor.core.env import InvalidVariable, without_password

_MAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


@dataclass(frozen=True)
class MailServer:
    """The outgoing mail server; *host* is empty if no mail server is configured."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool
    sender: str


def email() -> MailServer:
    return parse_email_url(os.environ.get("GRIDCAST_EMAIL_URL", ""))


def parse_email_url(url: str) -> MailServer:
    """Parse ``smtps://user:password@host:port?from=address``.

    Raises:
        InvalidVariable: the scheme, the host or the port is missing or wrong.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise InvalidVariable(
            f"GRIDCAST_EMAIL_URL: expected a number from 1 to 65535 as port: {error}"
        ) from None
    if url and (parts.scheme not in _MAIL_PORTS or not parts.hostname):
        schemes = ", ".join(f"{scheme}://" for scheme in _MAIL_PORTS)
        raise InvalidVariable(
            f"GRIDCAST_EMAIL_URL: expected {schemes} and a host, got {without_password(url)!r}"
        )
    return MailServer(
        host=parts.hostname or "",
        port=port or _MAIL_PORTS.get(parts.scheme, 25),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+starttls",
        tls=parts.scheme == "smtps",
        sender=dict(parse_qsl(parts.query)).get("from", "gridcast@localhost"),
    )
