"""Wrong configurations of logins are refused, with a text that says what to do."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import replace

import pytest
from django.utils import timezone
from pytest_django import Settings

from monitor.core.env import InvalidVariable
from monitor.models import ProviderMetadata, Site
from monitor.operations.web_server.proxies import Proxies, named_proxies, proxies
from monitor.web.accounts import environment, settings_checks
from monitor.web.accounts.environment import IdentityProvider, RemoteUser

PROVIDER = IdentityProvider(
    "https://id.example.org/realms/grid",
    "gridcast",
    "secret",
    "Grid",
    ("openid",),
    "groups",
    (("viewer", "a"),),
)
REMOTE = RemoteUser("Remote-User", Proxies((ipaddress.ip_network("192.0.2.80/32"),), is_unix=False), "viewer")


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({}, []),
        ({"url": "http://localhost:8080"}, []),
        ({"url": "http://127.0.0.1:8080"}, []),
        ({"url": "http://id.example.org"}, ["expected https"]),
        ({"url": "id.example.org"}, ["expected https://host/path"]),
        ({"url": "https://id.example.org/realms/grid/"}, []),
        (
            {"url": "https://id.example.org/realms/grid/.well-known/openid-configuration"},
            ["expected the issuer alone"],
        ),
        ({"url": "https://id.example.org/?realm=grid"}, ["expected the issuer alone"]),
        ({"url": "https://login.microsoftonline.com/{tenantid}/v2.0"}, ["placeholder for tenants"]),
        ({"url": "https://login.microsoftonline.com/common/v2.0"}, ["/common is for the users of any"]),
        ({"url": "https://login.microsoftonline.us/organizations/v2.0/"}, ["/organizations is for"]),
        ({"url": "https://sts.windows.net/consumers/"}, ["/consumers is for"]),
        ({"url": "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"}, []),
        ({"url": "https://id.example.org/common"}, []),
        (
            {"roles": (("chief", "a"),)},
            ["expected viewer, scheduler, operator, administrator or site_admin:SITE"],
        ),
        ({"roles": (("site_admin:ncsa", "a"), ("viewer", "a"))}, []),
        ({"roles": (("site_admin", "a"), ("viewer:ncsa", "a"))}, ["got 'site_admin'", "got 'viewer:ncsa'"]),
        ({"scopes": ("profile",)}, ["expected openid among the scopes"]),
    ],
)
def test_an_identity_provider_that_cannot_work_is_refused(
    changes: dict[str, object], texts: list[str]
) -> None:
    faults = settings_checks.provider_faults(replace(PROVIDER, **changes))  # type: ignore[arg-type]
    assert len(faults) == len(texts)
    assert all(text in fault.msg for text, fault in zip(texts, faults, strict=True))


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({}, []),
        ({"role": ""}, []),
        ({"header": "REMOTE_USER"}, ["servers drop headers with an underscore"]),
        ({"header": "Remote User"}, ["expected letters, digits and hyphens"]),
        ({"header": "Cookie"}, ["has another meaning"]),
        ({"role": "root"}, ["expected viewer, scheduler, operator or administrator"]),
        (
            {"proxies": Proxies((ipaddress.ip_network("0.0.0.0/0"),), is_unix=False)},
            ["any host of 0.0.0.0/0 can log in"],
        ),
        ({"proxies": Proxies((ipaddress.ip_network("::/0"),), is_unix=False)}, ["any host of ::/0"]),
        ({"proxies": Proxies((ipaddress.ip_network("10.0.0.0/8"),), is_unix=False)}, ["any host of 10"]),
        ({"proxies": Proxies((ipaddress.ip_network("127.0.0.0/8"),), is_unix=False)}, []),
    ],
)
def test_a_header_that_any_client_could_send_is_refused(changes: dict[str, object], texts: list[str]) -> None:
    configured = replace(REMOTE, **changes)  # type: ignore[arg-type]
    faults = settings_checks.remote_user_faults(configured, configured.proxies)
    assert len(faults) == len(texts)
    assert all(text in fault.msg for text, fault in zip(texts, faults, strict=True))


@pytest.mark.django_db
def test_an_issuer_with_another_slash_at_its_end_is_said_so(settings: Settings) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = PROVIDER
    [unfetched] = settings_checks.provider_metadata()
    assert unfetched.msg.endswith(f"has fetched the metadata of {PROVIDER.url} yet.")
    issuer = f"{PROVIDER.url}/"
    endpoints = {name: f"{issuer}{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    ProviderMetadata.objects.create(
        issuer=PROVIDER.url, discovery=json.dumps({"issuer": issuer, **endpoints}), keys="{}"
    )
    [warning] = settings_checks.provider_metadata()
    assert (warning.id, warning.hint) == ("monitor.W011", f"Set GRIDCAST_OIDC_URL={issuer}")
    ProviderMetadata.objects.update(discovery="", fault="another issuer", failed_at=timezone.now())
    [warning] = settings_checks.provider_metadata()
    assert (warning.id, warning.msg.endswith("another issuer")) == ("monitor.W012", True)


@pytest.mark.django_db
def test_roles_at_sites_that_do_not_exist_are_named(settings: Settings) -> None:
    Site.objects.create(name="ncsa")
    roles = (("site_admin:ncsa", "a"), ("site_admin:nosuch", "b"), ("viewer", "c"))
    settings.GRIDCAST_IDENTITY_PROVIDER = replace(PROVIDER, roles=roles)
    [warning, _] = settings_checks.provider_metadata()
    assert warning.msg == (
        "GRIDCAST_OIDC_ROLES: there is no site 'nosuch': logins leave the role site_admin:nosuch out."
    )


@pytest.mark.parametrize(
    ("trusted", "named", "line"),
    [
        ("192.0.2.80", "192.0.2.0/24", None),
        ("unix,192.0.2.80", "192.0.2.80,unix", None),
        ("192.0.2.80,unix", "", "GRIDCAST_PROXIES=192.0.2.80,unix"),
        ("192.0.2.80,unix", "unix", "GRIDCAST_PROXIES=unix,192.0.2.80"),
        ("192.0.2.0/24", "192.0.2.80", "GRIDCAST_PROXIES=192.0.2.80,192.0.2.0/24"),
        ("2001:db8::/64", "10.0.0.0/16", "GRIDCAST_PROXIES=10.0.0.0/16,2001:db8::/64"),
    ],
)
def test_a_proxy_that_names_users_is_one_of_the_named_proxies(
    monkeypatch: pytest.MonkeyPatch, trusted: str, named: str, line: str | None
) -> None:
    monkeypatch.setenv("GRIDCAST_REMOTE_USER_PROXIES", trusted)
    monkeypatch.setenv("GRIDCAST_PROXIES", named)
    configured = replace(REMOTE, proxies=named_proxies("GRIDCAST_REMOTE_USER_PROXIES"))
    faults = settings_checks.remote_user_faults(configured, proxies())
    assert [fault.msg.rpartition(" Set ")[2] for fault in faults] == ([line] if line else [])


def test_nothing_is_checked_where_nothing_is_configured() -> None:
    assert settings_checks.identity_provider() == settings_checks.remote_user() == []


OIDC = {
    "GRIDCAST_OIDC_URL": "https://id.example.org/realms/grid/",
    "GRIDCAST_OIDC_CLIENT_ID": "gridcast",
    "GRIDCAST_OIDC_CLIENT_SECRET": "secret",
    "GRIDCAST_OIDC_ROLES": "administrator=/grid/admins; viewer=cn=users,ou=grid",
}


def test_the_provider_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.identity_provider() is None
    for name, value in OIDC.items():
        monkeypatch.setenv(name, value)
    provider = environment.identity_provider()
    assert provider is not None
    assert provider.url == "https://id.example.org/realms/grid/", "as it was written"
    assert provider.roles == (("administrator", "/grid/admins"), ("viewer", "cn=users,ou=grid"))
    assert (provider.groups_claim, provider.scopes) == ("groups", ("openid", "profile", "email"))


@pytest.mark.parametrize("missing", [name for name in OIDC if name != "GRIDCAST_OIDC_URL"])
def test_half_a_provider_is_refused(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name, value in OIDC.items():
        monkeypatch.setenv(name, value if name != missing else "")
    with pytest.raises(InvalidVariable, match=missing):
        environment.identity_provider()


@pytest.mark.parametrize("text", ["viewer", "viewer=", "=users", ";", "viewer=a;b"])
def test_roles_without_groups_are_refused(text: str) -> None:
    with pytest.raises(InvalidVariable, match="expected role=group"):
        environment.parse_roles(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "expected the addresses"),
        ("proxy.example.org", "expected addresses and networks"),
        ("10.0.0.1/8", "write 10.0.0.0/8 for the network"),
    ],
)
def test_a_header_without_its_proxies_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str, text: str
) -> None:
    assert environment.remote_user() is None
    monkeypatch.setenv("GRIDCAST_REMOTE_USER_HEADER", "Remote-User")
    monkeypatch.setenv("GRIDCAST_REMOTE_USER_PROXIES", value)
    with pytest.raises(InvalidVariable, match=text):
        environment.remote_user()


@pytest.mark.parametrize("hours", ["0", "-1", "x", "8761", "1.5"])
def test_sessions_last_hours(monkeypatch: pytest.MonkeyPatch, hours: str) -> None:
    assert environment.session_seconds() == 14 * 24 * 3600
    monkeypatch.setenv("GRIDCAST_SESSION_HOURS", "8")
    assert environment.session_seconds() == 8 * 3600
    monkeypatch.setenv("GRIDCAST_SESSION_HOURS", hours)
    with pytest.raises(InvalidVariable, match="expected a whole number of hours from 1 to 8760"):
        environment.session_seconds()


@pytest.mark.parametrize("host", ["", "https://grid.example.org", "https://grid.example.org:8443"])
def test_an_address_that_is_answered_is_no_fault(host: str, settings: Settings) -> None:
    settings.GRIDCAST_URL, settings.ALLOWED_HOSTS = host, ["localhost", "grid.example.org"]
    assert settings_checks.own_address() == []


def test_an_address_that_is_not_answered_is_said(settings: Settings) -> None:
    settings.GRIDCAST_URL, settings.ALLOWED_HOSTS = "https://x.org", ["localhost", "grid.example.org"]
    [fault] = settings_checks.own_address()
    assert fault.msg.startswith(
        "GRIDCAST_URL: x.org is not among GRIDCAST_HOSTS (localhost, grid.example.org)"
    )


@pytest.mark.parametrize(
    ("roles", "values", "provider", "texts"),
    [
        ((), (), None, []),
        ((), (), PROVIDER, []),
        (("operator", "administrator"), (), None, []),
        (("operator",), ("mfa",), PROVIDER, []),
        (("operator",), (), replace(PROVIDER, confirm="auth_time"), []),
        (("operator",), (), PROVIDER, ["can add no second factor here"]),
        (("chief", "operator"), (), None, ["expected some of the roles viewer, scheduler"]),
        ((), ("mfa",), PROVIDER, ["has no effect without"]),
        (("operator",), ("mfa",), None, ["has no effect without"]),
    ],
)
def test_roles_that_need_a_second_factor_are_checked(
    roles: tuple[str, ...], values: tuple[str, ...], provider: IdentityProvider | None, texts: list[str]
) -> None:
    faults = settings_checks.second_factor_faults(frozenset(roles), frozenset(values), provider)
    assert len(faults) == len(texts)
    assert all(text in fault.msg for text, fault in zip(texts, faults, strict=True))
    assert settings_checks.second_factor_roles() == []


def test_the_rule_of_second_factors_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.second_factor_roles() == environment.provider_factor_values() == frozenset()
    assert environment.second_factor_days() == 14
    monkeypatch.setenv("GRIDCAST_SECOND_FACTOR_ROLES", " administrator, operator,")
    monkeypatch.setenv("GRIDCAST_OIDC_SECOND_FACTOR_VALUES", "mfa  https://refeds.org/profile/mfa")
    monkeypatch.setenv("GRIDCAST_SECOND_FACTOR_DAYS", "0")
    assert environment.second_factor_roles() == {"administrator", "operator"}
    assert environment.provider_factor_values() == {"mfa", "https://refeds.org/profile/mfa"}
    assert environment.second_factor_days() == 0
    monkeypatch.setenv("GRIDCAST_SECOND_FACTOR_DAYS", "366")
    with pytest.raises(InvalidVariable, match="expected a whole number from 0 to 365"):
        environment.second_factor_days()
