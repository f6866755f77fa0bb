"""System checks of what the environment says about logins."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError
from django.http.request import validate_host

from monitor.accounts.environment import REMOTE_USER_PROXIES
from monitor.accounts.provider.tenants import tenant_fault
from monitor.checks import SETTINGS, WIDE_PREFIX
from monitor.env import is_loopback
from monitor.models import ProviderMetadata
from monitor.models.role import UserRole
from monitor.web.proxies import VARIABLE, Proxies

if TYPE_CHECKING:
    from monitor.accounts.environment import IdentityProvider, RemoteUser

# Headers that clients, or proxies for other reasons, send by themselves.
_TAKEN = {
    *("authorization", "cookie", "forwarded", "host", "origin", "referer", "user-agent", "x-real-ip"),
    *("x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-request-id"),
}


@register(SETTINGS)
def identity_provider(**_: Any) -> list[CheckMessage]:
    return provider_faults(settings.GRIDCAST_IDENTITY_PROVIDER)


@register("identity provider")
def provider_metadata(**_: Any) -> list[CheckMessage]:
    """Return what the depot knows against logins by the provider.

    Only ``check`` runs this: it reads the depot, which may be away or not yet made.
    """
    configured = settings.GRIDCAST_IDENTITY_PROVIDER
    if configured is None:
        return []
    try:
        row = ProviderMetadata.objects.filter(issuer=configured.url).first()
    except DatabaseError:
        return []
    return metadata_faults(row) if row is not None else []


def metadata_faults(row: ProviderMetadata) -> list[CheckMessage]:
    faults: list[CheckMessage] = []
    if row.fault:
        message = f"GRIDCAST_OIDC_URL: no usable metadata at {row.failed_at:%Y-%m-%d %H:%M} UTC: {row.fault}"
        faults.append(Warning(message, id="monitor.W012"))
    if not row.discovery:
        return faults
    issuer = json.loads(row.discovery)["issuer"]
    if issuer != row.issuer:  # by a slash: others are not stored
        message = f"GRIDCAST_OIDC_URL is {row.issuer}, and the provider calls itself {issuer}."
        faults.append(Warning(message, hint=f"Set GRIDCAST_OIDC_URL={issuer}", id="monitor.W011"))
    return faults


@register(SETTINGS)
def own_address(**_: Any) -> list[CheckMessage]:
    """Return whether the address of links and logins is answered here."""
    host = urlsplit(settings.GRIDCAST_URL).hostname
    if not host or validate_host(host, settings.ALLOWED_HOSTS):
        return []
    names = ", ".join(settings.ALLOWED_HOSTS)
    message = f"GRIDCAST_URL: {host} is not among GRIDCAST_HOSTS ({names}): its pages would answer 400."
    return [Warning(message, hint=f"Add {host} to GRIDCAST_HOSTS.", id="monitor.W013")]


@register(SETTINGS)
def remote_user(**_: Any) -> list[CheckMessage]:
    return remote_user_faults(settings.GRIDCAST_REMOTE_USER, settings.GRIDCAST_PROXIES)


@register(SETTINGS)
def second_factor_roles(**_: Any) -> list[CheckMessage]:
    return second_factor_faults(
        settings.GRIDCAST_SECOND_FACTOR_ROLES,
        settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES,
        settings.GRIDCAST_IDENTITY_PROVIDER,
    )


def second_factor_faults(
    roles: frozenset[str], provider_values: frozenset[str], provider: IdentityProvider | None
) -> list[CheckMessage]:
    faults: list[CheckMessage] = [
        _error(
            20,
            f"GRIDCAST_SECOND_FACTOR_ROLES: expected some of the roles {', '.join(UserRole.values)},"
            f" separated by commas, got {role!r}.",
        )
        for role in sorted(roles - set(UserRole.values))
    ]
    if roles and provider is not None and not (provider.confirm or provider_values):
        message = (
            "GRIDCAST_SECOND_FACTOR_ROLES: accounts of the identity provider can add no second factor here,"
            " because they cannot confirm that it is they: after GRIDCAST_SECOND_FACTOR_DAYS, no page opens."
        )
        hint = (
            "Set GRIDCAST_OIDC_CONFIRM, or GRIDCAST_OIDC_SECOND_FACTOR_VALUES if the provider asks for one."
        )
        faults.append(Warning(message, hint=hint, id="monitor.W017"))
    if provider_values and not (roles and provider):
        faults.append(
            Warning(
                "GRIDCAST_OIDC_SECOND_FACTOR_VALUES has no effect without GRIDCAST_SECOND_FACTOR_ROLES and"
                " GRIDCAST_OIDC_URL.",
                hint="Set both, or remove it.",
                id="monitor.W015",
            )
        )
    return faults


def provider_faults(configured: IdentityProvider | None) -> list[CheckMessage]:
    if configured is None:
        return []
    faults = _issuer_faults(configured.url)
    faults += [
        _error(
            12, f"GRIDCAST_OIDC_ROLES: expected one of the roles {', '.join(UserRole.values)}, got {role!r}."
        )
        for role, _ in configured.roles
        if not _is_role(role)
    ]
    if "openid" not in configured.scopes:
        faults.append(_error(13, "GRIDCAST_OIDC_SCOPES: expected openid among the scopes."))
    return faults


def _issuer_faults(url: str) -> list[CheckMessage]:
    faults: list[CheckMessage] = []
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        faults.append(_error(10, f"GRIDCAST_OIDC_URL: expected https://host/path, got {url!r}."))
    elif parts.scheme == "http" and not is_loopback(parts.hostname):
        faults.append(
            _error(
                11,
                f"GRIDCAST_OIDC_URL: expected https, got {url!r}: any host on the way could log"
                " in as any user.",
            )
        )
    if fault := tenant_fault(url):
        faults.append(_error(17, f"GRIDCAST_OIDC_URL: {fault}."))
    if "/.well-known/" in url or parts.query or parts.fragment:
        faults.append(
            _error(
                18,
                f"GRIDCAST_OIDC_URL: expected the issuer alone, got {url!r}: gridcast appends"
                " /.well-known/openid-configuration.",
            )
        )
    return faults


def remote_user_faults(configured: RemoteUser | None, proxies: Proxies) -> list[CheckMessage]:
    if configured is None:
        return []
    faults: list[CheckMessage] = []
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", configured.header):
        faults.append(
            _error(
                14,
                "GRIDCAST_REMOTE_USER_HEADER: expected letters, digits and hyphens, got"
                f" {configured.header!r}: servers drop headers with an"
                " underscore, by which clients could forge it.",
            )
        )
    elif configured.header.lower() in _TAKEN:
        faults.append(
            _error(15, f"GRIDCAST_REMOTE_USER_HEADER: {configured.header} has another meaning already.")
        )
    if configured.role and not _is_role(configured.role):
        faults.append(
            _error(
                16,
                f"GRIDCAST_REMOTE_USER_ROLE: expected one of the roles {', '.join(UserRole.values)},"
                f" got {configured.role!r}.",
            )
        )
    return [*faults, *_proxy_faults(configured.proxies, proxies)]


def _proxy_faults(trusted: Proxies, proxies: Proxies) -> list[CheckMessage]:
    """Return what is wrong with the proxies that may name a user."""
    faults: list[CheckMessage] = []
    if missing := str(trusted.without(proxies)):
        named = str(proxies)
        faults.append(
            _error(
                30,
                f"{REMOTE_USER_PROXIES}: expected proxies that {VARIABLE} lists ({named or 'it lists none'}),"
                f" got {missing} as well. Set {VARIABLE}={f'{named},' if named else ''}{missing}",
            )
        )
    wide = [str(each) for each in trusted.networks if each.prefixlen < WIDE_PREFIX[each.version]]
    if wide:
        faults.append(
            Warning(
                f"{REMOTE_USER_PROXIES}: any host of {', '.join(wide)} can log in as any user.",
                hint="Name the addresses of the proxies.",
                id="monitor.W010",
            )
        )
    return faults


def _is_role(text: str) -> bool:
    """Return whether *text* is a role, or ``site_admin:SITE`` of a site that may be missing."""
    role, _, site = text.partition(":")
    return role in UserRole.values and bool(site) == (role == UserRole.SITE_ADMIN)


def _error(number: int, message: str) -> Error:
    return Error(message, id=f"monitor.E{number:03}")
