"""System checks of what the environment says about logins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError

from monitor.accounts.provider.documents import parse_object, tenant_fault
from monitor.checks import SETTINGS
from monitor.env import is_loopback
from monitor.models import ProviderMetadata
from monitor.models.role import UserRole

if TYPE_CHECKING:
    from monitor.accounts.environment import IdentityProvider, RemoteUser

# Headers that clients, or proxies for other reasons, send by themselves.
_TAKEN = {"authorization", "cookie", "host", "origin", "referer", "user-agent", "x-forwarded-for"}
_WIDE = {4: 16, 6: 48}  # prefix lengths of networks in which strangers may be


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
    issuer = parse_object(row.discovery.encode(), "discovery document")["issuer"]
    if issuer != row.issuer:  # by a slash: others are not stored
        message = f"GRIDCAST_OIDC_URL is {row.issuer}, and the provider calls itself {issuer}."
        faults.append(Warning(message, hint=f"Set GRIDCAST_OIDC_URL={issuer}", id="monitor.W011"))
    return faults


@register(SETTINGS)
def remote_user(**_: Any) -> list[CheckMessage]:
    return remote_user_faults(settings.GRIDCAST_REMOTE_USER)


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


def remote_user_faults(configured: RemoteUser | None) -> list[CheckMessage]:
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
    wide = [str(network) for network in configured.networks if network.prefixlen < _WIDE[network.version]]
    if wide:
        faults.append(
            Warning(
                f"GRIDCAST_REMOTE_USER_PROXIES: any host of {', '.join(wide)} can log in as any user.",
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
