"""The environment variables that gridcast reads, with their defaults.

``GRIDCAST_VAR``         directory of all state (default: ``var`` beside ``manage.py``)
``DATABASE_URL``         an existing PostgreSQL server; unset: the embedded server under GRIDCAST_VAR
``GRIDCAST_TIMESCALEDB`` directory of TimescaleDB's files, which the embedded PostgreSQL then loads:
                         ``share/extension/timescaledb.control`` and ``lib/timescaledb.so`` below it
``GRIDCAST_DB_WEB_PASSWORD``, ``GRIDCAST_DB_REPORTER_PASSWORD``  passwords of the accounts that
                         ``manage.py depot accounts`` creates in the database
``REDIS_URL``            an existing server that speaks the Redis protocol; unset: the embedded server
``GRIDCAST_SECRET_KEY``  Django's secret key; unset: a random key, generated once and kept under GRIDCAST_VAR
``GRIDCAST_HOSTS``       host names that the web serves, separated by commas (default: loopback only)
``GRIDCAST_TLS``         "1": users reach the web through a TLS proxy that sets X-Forwarded-Proto; "0":
                         unencrypted on purpose; needed if GRIDCAST_HOSTS has hosts beyond loopback
``GRIDCAST_URL``         public URL of the web, for links in mails and for passkeys, which belong to its host:
                         ``https://gridcast.example.org``
``GRIDCAST_EMAIL_URL``   outgoing mail server: ``smtps://user:password@host:port?from=address``, or ``smtp``
``GRIDCAST_DEPOT_DIRECTORY``      a local directory on the database's disk, to measure its free space
                                  (default: the embedded server's)
``GRIDCAST_DEPOT_MAX_BYTES``      maximum size of the database (default: no limit)
``GRIDCAST_DEPOT_RESERVE_BYTES``  reports are refused while less than this is free (default: 268435456)
``GRIDCAST_AVAILABILITY_FINAL_AFTER_DAYS``  days after a month until its availability is final (default: 10)
``GRIDCAST_API_REQUESTS``         API requests that one token, user, reporter or address may send within ten
                                  seconds (default: 20000)
``GRIDCAST_PROCESSOR_SECONDS``    processor time that the requests of one user, reporter or ping key may take
                                  within ten seconds, half of it on one route (default: 15)
``GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS``  the same for an address without a login (default: 1)
``GRIDCAST_WEB_MAX_BYTES``        memory of a web process, beyond which it is replaced between requests
                                  (default: 512 MiB more than after its start)
``GRIDCAST_CONNECTIONS_PER_ADDRESS``  connections that one address may have in a web process (default: 100)
``GRIDCAST_PROXIES``              addresses and networks of our proxies, separated by commas, and ``unix`` for
                                  those that use a Unix socket: that limit is not theirs, and only they name
                                  clients (default: loopback and unix if GRIDCAST_TLS is 1, else none)
``GRIDCAST_WEB_STATEMENT_SECONDS``  seconds after which PostgreSQL cancels a statement of the web server, from
                                  1 to 3600 (default: 30)
``GRIDCAST_SUSPECT_SHARE``        share of all sites, more than 0 and at most 1: the monitor suspects itself
                                  if so many, and at least three, begin to fail at once (default: 0.5)
``GRIDCAST_SUSPECT_WINDOW_SECONDS``  how long "at once" is, from 60 s to a day (default: 900)
``GRIDCAST_SESSION_HOURS``        hours after a login until its session ends (default: 336, 14 days)
``GRIDCAST_OIDC_URL``             issuer of an OpenID Connect provider, by which users then log in as well
``GRIDCAST_OIDC_CLIENT_ID``       gridcast's id at the provider
``GRIDCAST_OIDC_CLIENT_SECRET``   and its secret
``GRIDCAST_OIDC_ROLES``           roles of the provider's groups: ``administrator=admins;viewer=users``
``GRIDCAST_OIDC_GROUPS_CLAIM``    the claim that has the groups of a user (default: groups)
``GRIDCAST_OIDC_NAME``            the provider's name on the login page (default: single sign-on)
``GRIDCAST_OIDC_SCOPES``          scopes to ask for (default: openid profile email)
``GRIDCAST_OIDC_VALID_DAYS``      days that the roles of a login count without a further one (default: 14)
``GRIDCAST_OIDC_CONFIRM``         how a user confirms there who it is: ``auth_time`` or ``login`` (default: -)
``GRIDCAST_OIDC_IDENTITIES``      identities that one account may have (default: 1)
``GRIDCAST_LOCAL_LOGIN``          accounts that log in by password or passkey: ``everybody`` (the default) but
                                  those with roles of the provider alone, ``nobody``, or names, by commas
``GRIDCAST_OIDC_SECOND_FACTOR_VALUES``  values of the claims amr and acr, separated by spaces, by which the
                                  provider says that a second factor was used (default: none)
``GRIDCAST_SECOND_FACTOR_ROLES``  roles, separated by commas, whose users need a second factor (default: none)
``GRIDCAST_SECOND_FACTOR_DAYS``   days after the role's grant until they need it, from 0 to 365 (default: 14)
``GRIDCAST_REMOTE_USER_HEADER``   header in which a proxy names the user it has authenticated
``GRIDCAST_REMOTE_USER_PROXIES``  these proxies, which GRIDCAST_PROXIES lists as well
``GRIDCAST_REMOTE_USER_ROLE``     role of new accounts of users that the proxy names (default: none)
``GRIDCAST_AUDIT_KEEP_DAYS``      days after which events of the audit record are deleted (default: 400)
``GRIDCAST_TOKEN_FAMILY_DAYS``    days after its issue until which rotation prolongs a token (default: 365)
``GRIDCAST_METRICS_ALLOW``  addresses and networks, separated by commas, that may read /metrics without a
                            token; they see the series that every user sees (default: none)
``GRIDCAST_METRICS_MAX_SERIES``  number of series that one answer of /metrics describes (default: 10000)
``GRIDCAST_WEBHOOK_...``    the secrets that a rule or a webhook names, of operators, and
                            ``GRIDCAST_WEBHOOK_AT_<SITE>__<NAME>`` of a site; the control worker signs by them
``GRIDCAST_INTERNAL_WEBHOOK_HOSTS``  names and addresses, separated by commas, that may get webhooks although
                                     they are internal: loopback, link-local, private (default: none)
``GRIDCAST_OTLP_ENDPOINT``  URL of an OpenTelemetry collector, which gets every run as a trace by OTLP over
                            HTTP: ``http://collector.example.org:4318`` (default: none)
``GRIDCAST_DEBUG``       "1": error pages show tracebacks; never in production

``monitor.operations.embedded`` derives the defaults of DATABASE_URL, REDIS_URL and GRIDCAST_DEPOT_DIRECTORY.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from monitor.core.networks import unmapped
from reporters.path_chain import unsafe_reason

ROOT = Path(__file__).resolve().parents[2]
VAR_MARKER = ".gridcast"
_LOOPBACK_HOSTS = "localhost,127.0.0.1,[::1]"
# What Django accepts in the header Host, without a port; a dot before a name stands for all names below it.
_HOST = re.compile(r"\.?[a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:.]+\]", re.IGNORECASE | re.ASCII)
_BROKER_SCHEMES = ("redis://", "rediss://", "redis+socket://")
STATE_ENTRIES = (  # what we read, execute or write; servers examine their data directories themselves
    "secrets", "secrets/secret-key", "spool", "run", "static", "series", "log", "purpose", "site-policy.json",
    "storage", "testbed", "wan",
)  # fmt: skip
_FIRST_CONTENTS = {"secrets"}  # may exist before the directory is first used for anything else


class InvalidVariable(ValueError):
    """An environment variable has an unusable value; the message has its name and the expected value."""


def var_directory() -> Path:
    """Return the state directory, without symbolic links.

    Raises:
        InvalidVariable: another user could replace it, or what we read from it. Of a path below our code,
            the directories above the code are not examined: they could replace the code.
    """
    named = Path(os.environ.get("GRIDCAST_VAR") or ROOT / "var").absolute()
    for path in (named, *(named / name for name in STATE_ENTRIES)):
        if reason := unsafe_reason(path, trusted=ROOT if named.is_relative_to(ROOT) else None):
            raise InvalidVariable(f"GRIDCAST_VAR: cannot use the state directory {named}: {reason}")
    return named.resolve()


def make_var_directory(var: Path) -> Path:
    """Create the state directory and put a marker file into it, so that ``clean`` may remove the directory.

    A directory that already contains other files gets no marker: it may be a home directory.
    """
    var.mkdir(parents=True, exist_ok=True)
    if {entry.name for entry in var.iterdir()} <= _FIRST_CONTENTS:
        (var / VAR_MARKER).touch()
    return var


def has_marker(var: Path) -> bool:
    return (var / VAR_MARKER).is_file()


def database_url() -> str | None:
    return os.environ.get("DATABASE_URL") or None


def database_passwords(services: Iterable[str]) -> dict[str, str]:
    """Return the passwords of the accounts of *services* in the database, by service.

    Raises:
        InvalidVariable: a password is missing or short.
    """
    passwords = {}
    for service in services:
        name = f"GRIDCAST_DB_{service.upper()}_PASSWORD"
        passwords[service] = os.environ.get(name, "")
        if len(passwords[service]) < 12:
            raise InvalidVariable(f"{name}: expected a password of at least 12 characters")
    return passwords


def redis_url() -> str | None:
    """Return REDIS_URL, or None if it is not set. Raises InvalidVariable for another scheme."""
    url = os.environ.get("REDIS_URL")
    if url and not url.startswith(_BROKER_SCHEMES):
        raise InvalidVariable(
            "REDIS_URL: expected redis://host:port/0, rediss:// for TLS, or redis+socket:///path, got"
            f" {without_password(url)!r}"
        )
    return url or None


def without_password(url: str) -> str:
    """Return *url* for a message: whatever stands before an ``@`` may be a password."""
    return re.sub(r"^([\w+.-]*://)?.*@", r"\1...@", url, flags=re.DOTALL)


def parse_database_url(url: str) -> dict[str, Any]:
    """Turn ``postgresql://user:password@host:port/name?option=value`` into Django's settings.

    Raises:
        InvalidVariable: the scheme or the port is wrong.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise InvalidVariable(f"DATABASE_URL: expected a number from 1 to 65535 as port: {error}") from None
    if parts.scheme not in {"postgres", "postgresql"}:
        raise InvalidVariable(
            f"DATABASE_URL: expected postgresql://user:password@host:port/name, got {without_password(url)!r}"
        )
    options = {"connect_timeout": "5", **dict(parse_qsl(parts.query))}  # a page must not block for minutes
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or options.pop("host", ""),
        "PORT": str(port or options.pop("port", "")),
        "OPTIONS": options,
    }


def secret_key() -> str:
    return os.environ.get("GRIDCAST_SECRET_KEY") or kept_secret("secret-key")


def kept_secret(name: str) -> str:
    """Return the random secret *name*; the first call generates it and stores it in a file with mode 0600."""
    file = make_var_directory(var_directory()) / "secrets" / name
    with contextlib.suppress(FileNotFoundError):
        return file.read_text(encoding="ascii")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, encoding="ascii") as draft:
        draft.write(secrets.token_urlsafe(48))
        draft.flush()
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, file)  # atomic: the first process wins, and all processes read its secret
    return file.read_text(encoding="ascii")


def demo_password(user: str) -> str:
    """Return the password of the demo's account *user*; it is random, stored, and short enough to type."""
    return kept_secret(f"demo-password-{user}")[:12]


def hosts() -> list[str]:
    """Return the host names that the web serves.

    Raises:
        InvalidVariable: a host is written so that no request could name it, or stands for all; or it is not
            of loopback, and GRIDCAST_TLS does not say whether users reach it through TLS: a forgotten
            variable must not send passwords and tokens unencrypted.
    """
    names = entries("GRIDCAST_HOSTS") or _LOOPBACK_HOSTS.split(",")
    if wrong := [name for name in names if not _HOST.fullmatch(name)]:
        raise InvalidVariable(
            "GRIDCAST_HOSTS: expected host names and addresses without scheme and port, separated by commas,"
            " such as gridcast.example.org,[2001:db8::1], or .example.org for all names below it, got"
            f" {wrong[0]!r}"
        )
    reachable = [name for name in names if not is_loopback(name)]
    if reachable and not decides_on_tls():
        raise InvalidVariable(
            f"GRIDCAST_TLS: other machines reach the web as {reachable[0]} (GRIDCAST_HOSTS): "
            "set it to 1 behind a TLS proxy, or to 0 if passwords and tokens may travel unencrypted"
        )
    return names


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def names_hosts() -> bool:
    """Return whether GRIDCAST_HOSTS is set; without the variable the web serves loopback only."""
    return bool(os.environ.get("GRIDCAST_HOSTS"))


def decides_on_tls() -> bool:
    """Return whether GRIDCAST_TLS says if users reach the web through TLS; for loopback it need not."""
    return bool(os.environ.get("GRIDCAST_TLS"))


def behind_tls() -> bool:
    """Return whether users reach the web through a TLS proxy.

    Raises:
        InvalidVariable: GRIDCAST_TLS is neither 0 nor 1.
    """
    return _is_on("GRIDCAST_TLS")


def _is_on(name: str) -> bool:
    text = os.environ.get(name, "")
    if text not in {"", "0", "1"}:
        raise InvalidVariable(f"{name}: expected 0 or 1, got {text!r}")
    return text == "1"


def depot_directory() -> Path | None:
    """Return GRIDCAST_DEPOT_DIRECTORY, or None if it is not set."""
    directory = os.environ.get("GRIDCAST_DEPOT_DIRECTORY")
    return Path(directory) if directory else None


def depot_max_bytes() -> int | None:
    """Return the maximum size of the depot's database in bytes; None means that the size is not limited."""
    return _bytes("GRIDCAST_DEPOT_MAX_BYTES", None)


def depot_reserve_bytes() -> int:
    """Return how many bytes must stay free for the ledger; reports are refused while fewer bytes are free."""
    return _bytes("GRIDCAST_DEPOT_RESERVE_BYTES", 256 * 1024**2) or 0


def availability_final_after_days() -> int:
    """Return how many days after its end the availability of a month is final."""
    return whole_number("GRIDCAST_AVAILABILITY_FINAL_AFTER_DAYS", default=10, least=0, most=9999)


def audit_keep_days() -> int:
    """Return for how many days events of the audit record are kept."""
    return whole_number("GRIDCAST_AUDIT_KEEP_DAYS", default=400, most=9999)


def token_family_days() -> int:
    """Return for how many days after its issue a token can be prolonged by rotation."""
    return whole_number("GRIDCAST_TOKEN_FAMILY_DAYS", default=365, most=9999)


def whole_number(name: str, *, default: int, most: int, least: int = 1) -> int:
    """Return the whole number, from *least* to *most*, in the variable *name*."""
    text = os.environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and least <= int(text) <= most):
        raise InvalidVariable(f"{name}: expected a whole number from {least} to {most}, got {text!r}")
    return int(text)


def _bytes(name: str, default: int | None) -> int | None:
    text = os.environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidVariable(f"{name}: expected a whole number of bytes, got {text!r}")
    return int(text)


def suspect_share() -> float:
    """Return the share of sites that, when they begin to fail at once, throw suspicion on the monitor."""
    text = os.environ.get("GRIDCAST_SUSPECT_SHARE") or "0.5"
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InvalidVariable(
            f"GRIDCAST_SUSPECT_SHARE: expected a number above 0 and at most 1, such as 0.5, got {text!r}"
        )
    return share


def suspect_window_seconds() -> int:
    """Return within how many seconds sites have to begin to fail to do so at once."""
    return whole_number("GRIDCAST_SUSPECT_WINDOW_SECONDS", default=900, least=60, most=86_400)


def entries(name: str) -> list[str]:
    """Return the texts that the variable *name* lists, separated by commas."""
    return [text.strip() for text in os.environ.get(name, "").split(",") if text.strip()]


def parse_networks(name: str, texts: Iterable[str], *others: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks in *texts*, of the variable *name*; an error names the *others* that may be listed.

    Raises:
        InvalidVariable: a text is neither an address nor a network.
    """
    return tuple(unmapped(_network(name, text, others)) for text in texts)


def _network(name: str, text: str, others: Iterable[str]) -> IPv4Network | IPv6Network:
    expected = " and ".join(["addresses and networks, such as 10.1.2.3,10.9.0.0/16", *others])
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise InvalidVariable(f"{name}: expected {expected}, got {text!r}") from None
    address = text.partition("/")[0]
    if network.prefixlen < network.max_prefixlen and ipaddress.ip_address(address) != network[0]:
        raise InvalidVariable(
            f"{name}: expected {expected}, got {text!r}: write {network} for the network, or {address} for"
            " the address alone"
        )
    return network


def internal_webhook_hosts() -> frozenset[str]:
    """Return the hosts, as URLs have them, that may get webhooks although their addresses are internal."""
    hosts = os.environ.get("GRIDCAST_INTERNAL_WEBHOOK_HOSTS", "").split(",")
    return frozenset(host.strip().strip("[]").lower() for host in hosts if host.strip())


def otlp_endpoint() -> str:
    """Return the URL of the collector without ``/v1/traces``; empty if there is none."""
    url = os.environ.get("GRIDCAST_OTLP_ENDPOINT", "")
    if url and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        raise InvalidVariable(
            f"GRIDCAST_OTLP_ENDPOINT: expected a URL such as http://localhost:4318, got {url!r}"
        )
    return url.rstrip("/").removesuffix("/v1/traces")


def debug() -> bool:
    return _is_on("GRIDCAST_DEBUG")
