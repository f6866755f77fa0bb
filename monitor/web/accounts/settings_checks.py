"""System checks of what the environment says about logins."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.db import DatabaseError
from django.http.request import validate_host

from monitor.checks import SETTINGS, is_known, is_wide
from monitor.core.env import is_loopback
from monitor.models import ProviderMetadata, Site
from monitor.models.role import UserRole
from monitor.operations.web_server.proxies import VARIABLE, Proxies
from monitor.web.accounts.environment import EVERYBODY, NOBODY, REMOTE_USER_PROXIES
from monitor.web.accounts.provider.tenants import tenant_fault

if TYPE_CHECKING:
    from monitor.web.accounts.environment import IdentityProvider, RemoteUser

# Headers that clients, or proxies for other reasons, send by themselves.
_TAKEN = {
    *("authorization", "cookie", "forwarded", "host", "origin", "referer", "user-agent", "x-real-ip"),
    *("x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-request-id"),
}
# The variables that begin with a prefix have no effect without its switch.
_SWITCHES = {
    "GRIDCAST_OIDC_": "GRIDCAST_OIDC_URL",
    "GRIDCAST_REMOTE_USER_": "GRIDCAST_REMOTE_USER_HEADER",
    "GRIDCAST_SECOND_FACTOR_": "GRIDCAST_SECOND_FACTOR_ROLES",
}
_NEEDS_TWO = "GRIDCAST_OIDC_SECOND_FACTOR_VALUES"  # switches: ``second_factor_faults``
_SITELESS = [role for role in UserRole.values if role != UserRole.SITE_ADMIN]
# A role after a comma in what was read as the name of a group.
_NEXT_ROLE = re.compile(rf",\s*(?:{'|'.join(UserRole.values)})(?::[^=,]*)?\s*=")


@register(SETTINGS)
def local_login(**_: Any) -> list[CheckMessage]:
    """Return whether no user could log in at all."""
    others = (settings.GRIDCAST_IDENTITY_PROVIDER, settings.GRIDCAST_REMOTE_USER)
    if settings.GRIDCAST_LOCAL_LOGIN.names != frozenset() or any(others):
        return []
    message = (
        f"GRIDCAST_LOCAL_LOGIN={NOBODY}: no user could log in, because neither GRIDCAST_OIDC_URL nor"
        " GRIDCAST_REMOTE_USER_HEADER is set."
    )
    return [Error(message, hint=f"Set one of them, or GRIDCAST_LOCAL_LOGIN={EVERYBODY}.", id="monitor.E021")]


@register(SETTINGS)
def parts_without_switch(**_: Any) -> list[CheckMessage]:
    return unused_parts(os.environ)


def unused_parts(environ: Mapping[str, str]) -> list[CheckMessage]:
    faults: list[CheckMessage] = []
    for prefix, switch in _SWITCHES.items():
        parts = sorted(
            name
            for name, value in environ.items()
            if value and name.startswith(prefix) and is_known(name) and name != _NEEDS_TWO
        )
        if parts and not environ.get(switch):
            message = f"No effect without {switch}: {', '.join(parts)}."
            hint = f"Set {switch}, or remove what has no effect."
            faults.append(Warning(message, hint=hint, id="monitor.W019"))
    return faults


@register(SETTINGS)
def identity_provider(**_: Any) -> list[CheckMessage]:
    return provider_faults(settings.GRIDCAST_IDENTITY_PROVIDER)


@register("identity provider")
def provider_metadata(**_: Any) -> list[CheckMessage]:
    """Return what the depot knows about logins by the provider.

    Only ``check`` runs this: it reads the depot, which may be away or not yet made.
    """
    configured = settings.GRIDCAST_IDENTITY_PROVIDER
    if configured is None:
        return []
    try:
        row = ProviderMetadata.objects.filter(issuer=configured.url).first()
        return [
            *site_faults(configured),
            *(metadata_faults(row) if row is not None else [_unfetched(configured)]),
        ]
    except DatabaseError:
        return []


def _unfetched(configured: IdentityProvider) -> CheckMessage:
    message = f"GRIDCAST_OIDC_URL: no control worker has fetched the metadata of {configured.url} yet."
    hint = "A running one does so within a minute; then this check says whether it could."
    return Info(message, hint=hint, id="monitor.I002")


def site_faults(configured: IdentityProvider) -> list[CheckMessage]:
    """Return the sites of mapped roles that do not exist: a login leaves such a role out."""
    sites = {role.partition(":")[2] for role, _ in configured.roles} - {""}
    missing = sites - set(Site.objects.filter(name__in=sites).values_list("name", flat=True))
    return [
        Warning(
            f"GRIDCAST_OIDC_ROLES: there is no site {site!r}: logins leave the role site_admin:{site} out.",
            hint="Correct the name, or add the site.",
            id="monitor.W021",
        )
        for site in sorted(missing)
    ]


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
        _error(20, f"GRIDCAST_SECOND_FACTOR_ROLES: {_wrong_factor_role(role)}.")
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
        _error(12, f"GRIDCAST_OIDC_ROLES: {fault}.")
        for role, _ in configured.roles
        if (fault := _wrong_mapped_role(role))
    ]
    faults += [
        Warning(
            f"GRIDCAST_OIDC_ROLES: {group!r} counts as the name of one group.",
            hint="Separate entries by semicolons: role=group;role=group.",
            id="monitor.W020",
        )
        for _, group in configured.roles
        if _NEXT_ROLE.search(group)
    ]
    if "openid" not in configured.scopes:
        message = "GRIDCAST_OIDC_SCOPES: expected openid among the scopes, separated by spaces, got"
        faults.append(_error(13, f"{message} {' '.join(configured.scopes)!r}."))
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
        reason = (
            ": servers drop headers with an underscore, by which clients could forge it"
            if "_" in configured.header
            else ""
        )
        faults.append(
            _error(
                14,
                "GRIDCAST_REMOTE_USER_HEADER: expected letters, digits and hyphens, such as Remote-User, got"
                f" {configured.header!r}{reason}.",
            )
        )
    elif configured.header.lower() in _TAKEN:
        faults.append(
            _error(15, f"GRIDCAST_REMOTE_USER_HEADER: {configured.header} has another meaning already.")
        )
    return [*faults, *_new_account_faults(configured.role), *_proxy_faults(configured.proxies, proxies)]


def _new_account_faults(role: str) -> list[CheckMessage]:
    """Return what is wrong with the role of the accounts that are made for unknown users."""
    if role == UserRole.ADMINISTRATOR:
        message = "GRIDCAST_REMOTE_USER_ROLE: each unknown user that a proxy names becomes an administrator."
        hint = f"Set it to {UserRole.VIEWER}, and grant the role to users: manage.py access grant USER {role}"
        return [Warning(message, hint=hint, id="monitor.W022")]
    if not role or role in _SITELESS:
        return []
    name, colon, _ = role.partition(":")
    reason = ": only site_admin has a site" if colon else ""
    if name == UserRole.SITE_ADMIN:
        reason = ": site_admin is granted to single users, at a site"
    return [_error(16, f"GRIDCAST_REMOTE_USER_ROLE: expected {_listed(_SITELESS)}, got {role!r}{reason}.")]


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
    wide = [str(each) for each in trusted.networks if is_wide(each)]
    if wide:
        faults.append(
            Warning(
                f"{REMOTE_USER_PROXIES}: any host of {', '.join(wide)} can log in as any user.",
                hint="Name the addresses of the proxies.",
                id="monitor.W010",
            )
        )
    return faults


def _wrong_mapped_role(text: str) -> str:
    """Return what is wrong with *text* as the role of a group; empty: nothing."""
    role, colon, site = text.partition(":")
    if role == UserRole.SITE_ADMIN:
        return "" if site else f"{role} needs a site: write {role}:SITE=group, got {text!r}"
    if role in _SITELESS:
        return f"only {UserRole.SITE_ADMIN} has a site: write {role}=group, got {text!r}" if colon else ""
    return f"expected {_listed([*_SITELESS, f'{UserRole.SITE_ADMIN}:SITE'])}, got {text!r}"


def _wrong_factor_role(text: str) -> str:
    role = text.partition(":")[0]
    if role in UserRole.values:
        return f"expected roles without a site: write {role}, got {text!r}"
    return f"expected some of the roles {', '.join(UserRole.values)}, separated by commas, got {text!r}"


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _error(number: int, message: str) -> Error:
    return Error(message, id=f"monitor.E{number:03}")
