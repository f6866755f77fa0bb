"""What the environment says about logins; ``monitor.core.env`` lists the variables."""

from __future__ import annotations

import os
from dataclasses import dataclass

from monitor.core.env import InvalidVariable, whole_number
from monitor.operations.web_server.proxies import Proxies, named_proxies

REMOTE_USER_PROXIES = "GRIDCAST_REMOTE_USER_PROXIES"
EVERYBODY, NOBODY = "everybody", "nobody"  # of GRIDCAST_LOCAL_LOGIN, beside names
AUTH_TIME, LOGIN = "auth_time", "login"  # of GRIDCAST_OIDC_CONFIRM


def session_seconds() -> int:
    """Return how long a session lasts after the login."""
    return 3600 * _count("GRIDCAST_SESSION_HOURS", "336", 8760, "hours")


def valid_days() -> int:
    """Return how long the roles that a provider named count without a further login."""
    return _count("GRIDCAST_OIDC_VALID_DAYS", "14", 3650, "days")


def _count(variable: str, default: str, most: int, unit: str) -> int:
    text = os.environ.get(variable) or default
    count = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else 0
    if not 1 <= count <= most:
        raise InvalidVariable(
            f"{variable}: expected a whole number of {unit} from 1 to {most}, got {text[:50]!r}"
        )
    return count


@dataclass(frozen=True)
class LocalLogin:
    """Which accounts may have a local door: a login by password or passkey, without the provider or a proxy.

    *names*: theirs; None: all. It opens to those that have a role granted here, or no identity.
    """

    names: frozenset[str] | None

    @property
    def permits_any(self) -> bool:
        return self.names is None or bool(self.names)

    def permits(self, username: str) -> bool:
        return self.names is None or username in self.names


def local_login() -> LocalLogin:
    """Return what ``GRIDCAST_LOCAL_LOGIN`` says: ``everybody``, ``nobody`` or names of accounts.

    Raises:
        InvalidVariable: one of the two words is not alone, or not in lower case; or there is no name.
    """
    text = os.environ.get("GRIDCAST_LOCAL_LOGIN", "").strip() or EVERYBODY
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if text not in {EVERYBODY, NOBODY} and (
        not names or {name.lower() for name in names} & {EVERYBODY, NOBODY}
    ):
        raise InvalidVariable(
            f"GRIDCAST_LOCAL_LOGIN: expected {EVERYBODY} or {NOBODY}, alone and in lower case, or names of"
            f" accounts, separated by commas, got {text!r}"
        )
    return LocalLogin(None if text == EVERYBODY else frozenset() if text == NOBODY else names)


def second_factor_roles() -> frozenset[str]:
    """Return the roles whose users need a second factor; ``settings_checks`` refuses unknown ones."""
    names = os.environ.get("GRIDCAST_SECOND_FACTOR_ROLES", "").split(",")
    return frozenset(name.strip() for name in names if name.strip())


def second_factor_days() -> int:
    """Return for how many days users with such a role may go on without a second factor."""
    return whole_number("GRIDCAST_SECOND_FACTOR_DAYS", default=14, least=0, most=365)


def provider_factor_values() -> frozenset[str]:
    """Return the values of ``amr`` and ``acr`` by which the provider says that a second factor was used.

    Raises:
        InvalidVariable: they are separated by commas: none of them would ever be equal to a claim.
    """
    text = os.environ.get("GRIDCAST_OIDC_SECOND_FACTOR_VALUES", "")
    if "," in text:
        raise InvalidVariable(
            "GRIDCAST_OIDC_SECOND_FACTOR_VALUES: expected values separated by spaces, without commas, got"
            f" {text!r}"
        )
    return frozenset(text.split())


@dataclass(frozen=True)
class IdentityProvider:
    """An OpenID Connect provider.

    Attributes:
        url: its issuer, as the operator wrote it.
        roles: pairs of a role here and a group there.
        confirm: how a user confirms there that it is the owner of the account: ``auth_time``, if tokens say
            when the user was authenticated; ``login``, by a login that is begun for it; empty: it cannot.
        most_identities: that one account may have.
    """

    url: str
    client_id: str
    client_secret: str
    name: str
    scopes: tuple[str, ...]
    groups_claim: str
    roles: tuple[tuple[str, str], ...]
    confirm: str = ""
    most_identities: int = 1


def identity_provider() -> IdentityProvider | None:
    """Return the provider that users log in by; None if none is configured.

    Raises:
        InvalidVariable: a variable that the provider needs is missing or wrong.
    """
    url = os.environ.get("GRIDCAST_OIDC_URL", "")
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
        groups_claim=_groups_claim(),
        roles=parse_roles(needed["ROLES"]),
        confirm=_confirm(),
        most_identities=_count("GRIDCAST_OIDC_IDENTITIES", "1", 10, "identities"),
    )


def _groups_claim() -> str:
    claim = os.environ.get("GRIDCAST_OIDC_GROUPS_CLAIM") or "groups"
    if claim != claim.strip() or not all(claim.split(".")):
        raise InvalidVariable(
            "GRIDCAST_OIDC_GROUPS_CLAIM: expected the name of a claim, or names joined by single dots, such"
            f" as realm_access.roles, got {claim!r}"
        )
    return claim


def _confirm() -> str:
    text = os.environ.get("GRIDCAST_OIDC_CONFIRM", "")
    if text not in {"", AUTH_TIME, LOGIN}:
        raise InvalidVariable(f"GRIDCAST_OIDC_CONFIRM: expected {AUTH_TIME} or {LOGIN}, got {text[:50]!r}")
    return text


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
