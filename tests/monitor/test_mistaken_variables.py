"""Mistakes in the environment: a start-up, and each command, say what is wrong and what to write."""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Iterable

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from monitor import checks
from monitor.checks import SETTINGS
from monitor.core import env

PROVIDER = {
    "GRIDCAST_OIDC_URL": "https://id.example.org/realms/grid",
    "GRIDCAST_OIDC_CLIENT_ID": "gridcast",
    "GRIDCAST_OIDC_CLIENT_SECRET": "secret",
    "GRIDCAST_OIDC_ROLES": "operator=/grid/operators;viewer=cn=users,ou=grid",
    "GRIDCAST_OIDC_CONFIRM": "auth_time",
}
PROXY = {
    "GRIDCAST_REMOTE_USER_HEADER": "Remote-User",
    "GRIDCAST_REMOTE_USER_PROXIES": "192.0.2.80",
    "GRIDCAST_PROXIES": "192.0.2.80",
}


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Messages:
    for name in list(os.environ):
        if name.startswith("GRIDCAST_") and name != "GRIDCAST_VAR":
            monkeypatch.delenv(name)
    return Messages(monkeypatch, settings)


class Messages:
    """What a command says about an environment: the error that ends its start, or its checks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
        self._monkeypatch, self._settings = monkeypatch, settings

    def about(self, variables: dict[str, str]) -> list[str]:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        try:
            loaded = runpy.run_path(str(env.ROOT / "monitor" / "settings.py"))
        except env.InvalidVariable as error:
            return [str(error)]
        for name, value in loaded.items():
            if name.startswith("GRIDCAST_") or name == "ALLOWED_HOSTS":
                setattr(self._settings, name, value)
        return [f"{fault.msg} {fault.hint or ''}" for fault in run_checks(tags=[SETTINGS])]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        PROVIDER,
        PROXY,
        {**PROVIDER, "GRIDCAST_LOCAL_LOGIN": "nobody"},
        {**PROXY, "GRIDCAST_LOCAL_LOGIN": "nobody"},
        {**PROVIDER, "GRIDCAST_OIDC_GROUPS_CLAIM": "realm_access.roles"},
        {**PROVIDER, "GRIDCAST_OIDC_GROUPS_CLAIM": "https://grid.example.org/groups"},
        {**PROVIDER, "GRIDCAST_OIDC_ROLES": "site_admin:ncsa=/grid/ncsa; viewer=cn=viewer,ou=grid"},
        {"GRIDCAST_HOSTS": "grid.example.org, .example.net,10.0.0.1,[2001:db8::1]", "GRIDCAST_TLS": "1"},
        {"GRIDCAST_HOSTS": "", "GRIDCAST_OIDC_CLIENT_ID": "", "GRIDCAST_DEBUG": ""},
        {"GRIDCAST_PROXIES": "10.0.0.0/8,fd00::/8,127.0.0.0/8,198.51.0.0/16"},
        {"GRIDCAST_WEBHOOK_OPS": "whsec_x", "GRIDCAST_WEBHOOK_AT_NCSA__CHAT": "whsec_y"},
        {"GRIDCAST_TOKEN_FILE": "/run/token", "GRIDCAST_SOAK_RUNS": "200", "GRIDCAST_PORT": "8000"},
        {"GRIDCAST_URL": "http://localhost:8000/"},
    ],
    ids=str,
)
def test_a_right_environment_is_not_complained_of(messages: Messages, variables: dict[str, str]) -> None:
    assert messages.about(variables) == []


MISTAKES = [
    # variables, and what the message has
    ({"GRIDCAST_LOCAL_LOGIN": "nobody"}, ["no user could log in", "GRIDCAST_OIDC_URL", "=everybody"]),
    ({"GRIDCAST_LOCAL_LOGIN": "everybody,admin"}, ["everybody or nobody, alone", "got 'everybody,admin'"]),
    ({"GRIDCAST_LOCAL_LOGIN": "Nobody"}, ["in lower case, or names of accounts", "got 'Nobody'"]),
    ({"GRIDCAST_LOCAL_LOGIN": ","}, ["or names of accounts, separated by commas", "got ','"]),
    ({"GRIDCAST_SECOND_FACTOR_ROLES": "chief"}, ["viewer, scheduler, site_admin, operator", "got 'chief'"]),
    ({"GRIDCAST_SECOND_FACTOR_ROLES": "site_admin:ncsa"}, ["without a site: write site_admin, got"]),
    ({"GRIDCAST_SECOND_FACTOR_ROLE": "operator"}, ["no such variable", "GRIDCAST_SECOND_FACTOR_ROLES?"]),
    ({"GRIDCAST_OIDC_VALIDDAYS": "3"}, ["no such variable", "mean GRIDCAST_OIDC_VALID_DAYS?"]),
    ({"GRIDCAST_WEBHOK_OPS": "whsec_x"}, ["no such variable", "mean GRIDCAST_WEBHOOK_...?"]),
    ({"GRIDCAST_LEASE_SECONDS": "9"}, ["GRIDCAST_LEASE_SECONDS: gridcast reads no such variable"]),
    ({"GRIDCAST_COFFEE": "1"}, ["no such variable", "lists the variables"]),
    (
        {"GRIDCAST_OIDC_CLIENT_ID": "gridcast", "GRIDCAST_OIDC_ROLES": "viewer=a"},
        ["without GRIDCAST_OIDC_URL: GRIDCAST_OIDC_CLIENT_ID, GRIDCAST_OIDC_ROLES."],
    ),
    (
        {"GRIDCAST_REMOTE_USER_ROLE": "viewer"},
        ["without GRIDCAST_REMOTE_USER_HEADER: GRIDCAST_REMOTE_USER_ROLE"],
    ),
    ({"GRIDCAST_REMOTE_USER_PROXIES": "::1"}, ["Set GRIDCAST_REMOTE_USER_HEADER, or remove"]),
    ({"GRIDCAST_SECOND_FACTOR_DAYS": "3"}, ["No effect without GRIDCAST_SECOND_FACTOR_ROLES"]),
    ({**PROXY, "GRIDCAST_REMOTE_USER_ROLE": "administrator"}, ["each unknown user", "Set it to viewer"]),
    (
        {**PROXY, "GRIDCAST_REMOTE_USER_ROLE": "site_admin"},
        ["expected viewer, scheduler, operator or administrator, got 'site_admin': site_admin is granted to"],
    ),
    (
        {**PROXY, "GRIDCAST_REMOTE_USER_ROLE": "site_admin:ncsa"},
        ["got 'site_admin:ncsa': site_admin is granted"],
    ),
    (
        {**PROXY, "GRIDCAST_REMOTE_USER_ROLE": "viewer:here"},
        ["got 'viewer:here': only site_admin has a site"],
    ),
    ({**PROXY, "GRIDCAST_REMOTE_USER_HEADER": "Remote_User"}, ["got 'Remote_User': servers drop headers"]),
    ({**PROXY, "GRIDCAST_REMOTE_USER_HEADER": "Remote User:"}, ["such as Remote-User, got 'Remote User:'."]),
    ({**PROVIDER, "GRIDCAST_OIDC_ROLES": "site_admin=a"}, ["needs a site: write site_admin:SITE=group"]),
    (
        {**PROVIDER, "GRIDCAST_OIDC_ROLES": "viewer:here=a"},
        ["only site_admin has a site: write viewer=group"],
    ),
    (
        {**PROVIDER, "GRIDCAST_OIDC_ROLES": "chief=a"},
        ["expected viewer, scheduler, operator, administrator or site_admin:SITE, got 'chief'"],
    ),
    (
        {**PROVIDER, "GRIDCAST_OIDC_ROLES": "operator=/grid/operators,viewer=/grid/users"},
        ["'/grid/operators,viewer=/grid/users' counts as the name of one group", "by semicolons"],
    ),
    ({**PROVIDER, "GRIDCAST_OIDC_ROLES": "viewer=a, site_admin:ncsa=b"}, ["counts as the name of one group"]),
    (
        {**PROVIDER, "GRIDCAST_OIDC_SCOPES": "openid,profile,email"},
        ["openid among the scopes, separated by spaces, got 'openid,profile,email'"],
    ),
    (
        {**PROVIDER, "GRIDCAST_OIDC_GROUPS_CLAIM": "realm_access..roles"},
        ["joined by single dots", "got 'realm_"],
    ),
    (
        {**PROVIDER, "GRIDCAST_OIDC_NAME": '"Grid"'},
        ["GRIDCAST_OIDC_NAME: the value begins and ends with a quot"],
    ),
    (
        {"GRIDCAST_OIDC_SECOND_FACTOR_VALUES": "mfa,otp"},
        ["separated by spaces, without commas, got 'mfa,otp'"],
    ),
    (
        {"GRIDCAST_HOSTS": "https://grid.example.org"},
        ["without scheme and port", "got 'https://grid.example"],
    ),
    (
        {"GRIDCAST_HOSTS": "localhost,grid.example.org:8000"},
        ["without scheme and port", "got 'grid.example.org:8000'"],
    ),
    ({"GRIDCAST_HOSTS": "*"}, ["GRIDCAST_HOSTS: expected host names and addresses", "got '*'"]),
    ({"GRIDCAST_HOSTS": "2001:db8::1"}, ["such as gridcast.example.org,[2001:db8::1]"]),
    ({"GRIDCAST_HOSTS": '"grid.example.org"'}, ["""got '"grid.example.org"'"""]),
    (
        {"GRIDCAST_PROXIES": "0.0.0.0/0"},
        ["any host of 0.0.0.0/0 can send requests in the name of any address"],
    ),
    ({"GRIDCAST_PROXIES": "127.0.0.1,8.0.0.0/8,2001::/16"}, ["any host of 8.0.0.0/8, 2001::/16 can"]),
    ({"GRIDCAST_PROXIES": "10.0.0.1/8"}, ["write 10.0.0.0/8 for the network, or 10.0.0.1 for the address"]),
    ({"GRIDCAST_METRICS_ALLOW": "2001:db8::1/64"}, ["write 2001:db8::/64 for the network"]),
    ({"GRIDCAST_TOKEN_FAMILY_DAYS": "0"}, ["a whole number from 1 to 9999, got '0'"]),
    ({"GRIDCAST_AUDIT_KEEP_DAYS": "0"}, ["a whole number from 1 to 9999, got '0'"]),
    ({"GRIDCAST_SESSION_HOURS": "1.5"}, ["a whole number of hours from 1 to 8760, got '1.5'"]),
    ({"GRIDCAST_DEBUG": "yes"}, ["GRIDCAST_DEBUG: expected 0 or 1, got 'yes'"]),
    ({"GRIDCAST_CONNECTIONS_PER_ADDRESS": "many"}, ["a whole number from 1 to 999999, got 'many'"]),
    ({"GRIDCAST_WEB_MAX_BYTES": "1 GB"}, ["GRIDCAST_WEB_MAX_BYTES: expected a number above 0, got '1 GB'"]),
    ({"GRIDCAST_URL": "https://example.org/grid/"}, ["no path", "write https://example.org"]),
    ({"GRIDCAST_URL": "https://example.org?grid"}, ["no path", "write https://example.org"]),
    ({"GRIDCAST_EMAIL_URL": "smtp.example.org"}, ["smtps:// and a host, got 'smtp.example.org'"]),
    ({"REDIS_URL": "foo"}, ["REDIS_URL: expected redis://host:port/0", "got 'foo'"]),
    ({"DATABASE_URL": "db.example.org"}, ["postgresql://user:password@host:port/name, got 'db.example.org'"]),
]


@pytest.mark.parametrize(("variables", "texts"), MISTAKES, ids=lambda value: str(value)[-60:])
def test_a_mistake_is_named_with_its_value_and_what_to_write(
    messages: Messages, variables: dict[str, str], texts: list[str]
) -> None:
    [message] = messages.about(variables)
    assert [text for text in texts if text not in message] == [], message


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("GRIDCAST_EMAIL_URL", "ada:secret@smtp.example.org"),
        ("GRIDCAST_URL", "https://ada:secret@grid.example.org"),
        ("REDIS_URL", "http://:sec@ret@valkey:6379"),
        ("DATABASE_URL", "mysql://ada:secret@db/depot"),
    ],
)
def test_a_message_does_not_show_the_password_of_an_address(messages: Messages, name: str, url: str) -> None:
    [message] = messages.about({name: url})
    assert f"...@{url.rpartition('@')[2]}'" in message
    assert not re.search("sec|ada", message)


PROGRAMS = (
    "monitor",
    "reporters",
    "probes",
    "client",
    "integrations",
    "docs",
    "Makefile",
    "docker-compose.yml",
)
TEXTS = {".py", ".c", ".lua", ".md", ".yml", ".yaml", ""}
BEGINNINGS = {"GRIDCAST_TOKENS"}  # of names, without the line below


def text_of(places: Iterable[str]) -> str:
    roots = [env.ROOT / place for place in places]
    files = [file for root in roots for file in (root, *root.rglob("*")) if file.suffix in TEXTS]
    return "\n".join(file.read_text() for file in files if file.is_file())


def names_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![A-Z_])GRIDCAST_[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_])", text)) - BEGINNINGS


def test_every_variable_of_the_code_and_of_the_documentation_is_known() -> None:
    of_programs, of_tests = text_of(PROGRAMS), text_of(["tests"])
    read = names_in("\n".join(re.findall(r"environ\b.*|OWN_SERVER = .*", of_tests)))
    names = names_in(of_programs) | read
    settings_alone = names_in("\n".join(re.findall(r"^GRIDCAST_\w+ = ", of_programs, re.MULTILINE)))
    unknown = {name for name in names if not checks.is_known(name)}
    assert unknown - settings_alone == set()
    assert {known for known in checks.OTHER_VARIABLES if not is_read(known, names)} == set()


def is_read(known: str, names: set[str]) -> bool:
    return known in names or any(known.endswith("_") and name.startswith(known) for name in names)
