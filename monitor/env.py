"""What the environment says, read in one place.

``GRIDCAST_VAR``         where state lives (default: ``var`` beside ``manage.py``)
``DATABASE_URL``         an existing PostgreSQL; without it the embedded one under GRIDCAST_VAR
``GRIDCAST_TIMESCALEDB`` a directory with TimescaleDB's files for the embedded PostgreSQL, which then loads
                         it: ``share/extension/timescaledb.control`` and ``lib/timescaledb.so`` below it
``REDIS_URL``            an existing Redis-protocol server; without it the embedded one
``GRIDCAST_SECRET_KEY``  Django's secret; without it one is made once and kept under GRIDCAST_VAR
``GRIDCAST_HOSTS``       host names that the web serves, separated by commas (default: loopback only)
``GRIDCAST_TLS``         "1": people reach the web through a proxy that speaks TLS and sets X-Forwarded-Proto
``GRIDCAST_URL``         where people reach the web, for links in mails: ``https://gridcast.example.org``
``GRIDCAST_EMAIL_URL``   who takes mail: ``smtps://user:password@host:port?from=address``, or ``smtp``
``GRIDCAST_DEPOT_DIRECTORY``      a directory of this host on the disk that has the database, to know how much
                                  is free (default: the embedded one's)
``GRIDCAST_DEPOT_MAX_BYTES``      how large the database may become (default: as large as it gets)
``GRIDCAST_DEPOT_RESERVE_BYTES``  reports are refused while less than this is free (default: 268435456)
``GRIDCAST_DEBUG``       "1" shows tracebacks in pages; never in production
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from monitor.embedded import places

ROOT = Path(__file__).resolve().parent.parent


class InvalidVariable(ValueError):
    """A variable of the environment that cannot be used; says which, and what would do."""


def var_directory() -> Path:
    return Path(os.environ.get("GRIDCAST_VAR") or ROOT / "var").resolve()


def database() -> dict[str, Any]:
    """Django's settings of the depot's database."""
    url = os.environ.get("DATABASE_URL") or _embedded_database_url()
    return parse_database_url(url)


def parse_database_url(url: str) -> dict[str, Any]:
    """Turn ``postgresql://user:password@host:port/name?option=value`` into Django's settings."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise InvalidVariable(f"DATABASE_URL: expected a number from 1 to 65535 as port: {error}") from None
    if parts.scheme not in {"postgres", "postgresql"}:
        raise InvalidVariable(
            f"DATABASE_URL: expected postgresql://user:password@host:port/name, "
            f"got the scheme {parts.scheme!r}"
        )
    options = {"connect_timeout": "5", **dict(parse_qsl(parts.query))}  # a page must not wait for ever
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or options.pop("host", ""),
        "PORT": str(port or options.pop("port", "")),
        "OPTIONS": options,
    }


def redis_url() -> str:
    return os.environ.get("REDIS_URL") or _embedded_redis_url()


def secret_key() -> str:
    given = os.environ.get("GRIDCAST_SECRET_KEY")
    return given or kept_secret("secret-key")


def kept_secret(name: str) -> str:
    """A random secret of that name, made at the first call and kept in a file that only we can read."""
    file = places.made(var_directory()) / "secrets" / name
    try:
        return file.read_text(encoding="ascii")
    except FileNotFoundError:
        pass
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, encoding="ascii") as draft:
        draft.write(secrets.token_urlsafe(48))
        draft.flush()
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, file)  # whole or not at all; the first who asks wins, and all read the same
    return file.read_text(encoding="ascii")


def demo_password(user: str) -> str:
    """The password of one of the demo's users: random, kept, short enough to type."""
    return kept_secret(f"demo-password-{user}")[:12]


def hosts() -> list[str]:
    return [host for host in os.environ.get("GRIDCAST_HOSTS", "localhost,127.0.0.1,[::1]").split(",") if host]


def behind_tls() -> bool:
    return os.environ.get("GRIDCAST_TLS") == "1"


def web_url() -> str:
    """Without a slash at its end; empty where nobody has said it."""
    return os.environ.get("GRIDCAST_URL", "").rstrip("/")


_MAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


@dataclass(frozen=True)
class MailServer:
    """Who takes mail from us; *host* is empty where nobody does."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool
    sender: str


def email() -> MailServer:
    """The mail server that the environment names."""
    return parse_email_url(os.environ.get("GRIDCAST_EMAIL_URL", ""))


def parse_email_url(url: str) -> MailServer:
    """Read ``smtps://user:password@host:port?from=address``."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise InvalidVariable(
            f"GRIDCAST_EMAIL_URL: expected a number from 1 to 65535 as port: {error}"
        ) from None
    if url and (parts.scheme not in _MAIL_PORTS or not parts.hostname):
        known = ", ".join(f"{scheme}://" for scheme in _MAIL_PORTS)
        raise InvalidVariable(f"GRIDCAST_EMAIL_URL: expected {known} and a host, got {parts.scheme!r}")
    return MailServer(
        host=parts.hostname or "",
        port=port or _MAIL_PORTS.get(parts.scheme, 25),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+starttls",
        tls=parts.scheme == "smtps",
        sender=dict(parse_qsl(parts.query)).get("from", "gridcast@localhost"),
    )


def depot_directory() -> Path | None:
    """A directory on the disk that has the depot's data; None where nobody has said where that is."""
    given = os.environ.get("GRIDCAST_DEPOT_DIRECTORY")
    if given:
        return Path(given)
    return None if os.environ.get("DATABASE_URL") else var_directory() / "postgres"


def depot_max_bytes() -> int | None:
    """How large the depot's database may become; None: as large as it gets."""
    return _bytes("GRIDCAST_DEPOT_MAX_BYTES", None)


def depot_reserve_bytes() -> int:
    """What reports leave free, for what cannot wait."""
    return _bytes("GRIDCAST_DEPOT_RESERVE_BYTES", 256 * 1024**2) or 0


def _bytes(name: str, default: int | None) -> int | None:
    given = os.environ.get(name)
    if not given:
        return default
    if not (given.isascii() and given.isdigit()):
        raise InvalidVariable(f"{name}: expected a whole number of bytes, got {given!r}")
    return int(given)


def debug() -> bool:
    return os.environ.get("GRIDCAST_DEBUG") == "1"


def _embedded_database_url() -> str:
    from monitor.embedded import postgres  # noqa: PLC0415 - only where nothing else is named

    return postgres.url(var_directory())


def _embedded_redis_url() -> str:
    from monitor.embedded import valkey  # noqa: PLC0415

    return valkey.url(var_directory())
