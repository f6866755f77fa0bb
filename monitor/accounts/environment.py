"""What the environment says about logins; ``monitor.env`` lists the variables."""

from __future__ import annotations

import os
from dataclasses import dataclass

from monitor.env import InvalidVariable
from monitor.web.proxies import Proxies, named_proxies

REMOTE_USER_PROXIES = "GRIDCAST_REMOTE_USER_PROXIES"


def session_seconds() -> int:
    """Return how long a session lasts after the login."""
    text = os.environ.get("GRIDCAST_SESSION_HOURS") or "336"
    hours = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= hours <= 8760:
        raise InvalidVariable(f"GRIDCAST_SESSION_HOURS: expected hours from 1 to 8760, got {text!r}")
    return hours * 3600


@dataclass(frozen=True)
class IdentityProvider:
    """An OpenID Connect provider; *roles* are pairs of a role of ours and a group of the provider."""

    url: str
    client_id: str
    client_secret: str
    name: str
    scopes: tuple[str, ...]
    groups_claim: str
    roles: tuple[tuple[str, str], ...]


def identity_provider() -> IdentityProvider | None:
    """Return the provider that users log in by; None if none is configured.

    Raises:
        InvalidVariable: a variable that the provider needs is missing or wrong.
    """
    url = os.environ.get("GRIDCAST_OIDC_URL", "").rstrip("/")
    if not url:
        return None
    needed = {
        name: os.environ.get(f"GRIDCAST_OIDC_{name}", "") for name in ("CLIENT_ID", "CLIENT_SECRET", "ROLES")
    }
    if missing := [f"GRIDCAST_OIDC_{name}" for name, value in needed.items() if not value]:
        raise InvalidVariable(f"GRIDCAST_OIDC_URL is set: expected {', '.join(missing)}, too")
    return IdentityProvider(
        url=url,
        client_id=needed["CLIENT_ID"],
        client_secret=needed["CLIENT_SECRET"],
        name=os.environ.get("GRIDCAST_OIDC_NAME") or "single sign-on",
        scopes=tuple((os.environ.get("GRIDCAST_OIDC_SCOPES") or "openid profile email").split()),
        groups_claim=os.environ.get("GRIDCAST_OIDC_GROUPS_CLAIM") or "groups",
        roles=parse_roles(needed["ROLES"]),
    )


def parse_roles(text: str) -> tuple[tuple[str, str], ...]:
    """Parse ``role=group;role=group``; a group may contain ``=`` and commas, as the names of LDAP do.

    Raises:
        InvalidVariable: an entry has no role or no group.
    """
    pairs = [entry.strip().partition("=") for entry in text.split(";") if entry.strip()]
    if not pairs or any(not (role.strip() and group.strip()) for role, _, group in pairs):
        raise InvalidVariable(f"GRIDCAST_OIDC_ROLES: expected role=group;role=group, got {text!r}")
    return tuple((role.strip(), group.strip()) for role, _, group in pairs)


@dataclass(frozen=True)
class RemoteUser:
    """The header by which *proxies* say which user they have authenticated.

    *role* is that of accounts made for users that have none; empty: no accounts are made.
    """

    header: str
    proxies: Proxies
    role: str

    @property
    def key(self) -> str:
        """Return the name of the header in a WSGI environment."""
        return f"HTTP_{self.header.upper().replace('-', '_')}"


def remote_user() -> RemoteUser | None:
    """Return how a proxy names users; None unless it is configured.

    Raises:
        InvalidVariable: the proxies are missing, or are no addresses, networks or ``unix``.
    """
    header = os.environ.get("GRIDCAST_REMOTE_USER_HEADER", "")
    if not header:
        return None
    proxies = named_proxies(REMOTE_USER_PROXIES)
    if not (proxies.networks or proxies.is_unix):
        raise InvalidVariable(
            "GRIDCAST_REMOTE_USER_HEADER is set: expected the addresses of the proxies that may send it in"
            f" {REMOTE_USER_PROXIES}, such as 127.0.0.1,::1, or unix"
        )
    return RemoteUser(header, proxies, os.environ.get("GRIDCAST_REMOTE_USER_ROLE", ""))
