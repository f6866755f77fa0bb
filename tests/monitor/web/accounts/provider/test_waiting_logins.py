"""A login that waits for its second factor, or is under way, ends with each event that takes its reason."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as STEPS
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AuditEvent
from monitor.models.role import UserRole
from monitor.web.accounts import identities, login_stage, sessions, users
from monitor.web.accounts.environment import LocalLogin
from monitor.web.accounts.factor_duty import PROVIDER_FACTOR
from monitor.web.accounts.sessions import IDENTITY_KEY
from tests.monitor.web.accounts.device import Device, login_options, options_of
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import as_confirmed, code_of, is_logged_in, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.pages import builders

STEP = "/login/second-factor/"
Browsers = Callable[[], Client]


def give_app(user: User) -> str:
    """Give *user* an authenticator app; return its secret."""
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    Authenticator.objects.create(user=user, type="totp", data={"secret": get_adapter().encrypt(secret)})
    return secret


# Events.


def _nothing(user: User, settings: Settings) -> None:
    pass


def _suspended(user: User, settings: Settings) -> None:
    for identity in user.identities.all():
        identities.suspend(identity, "no group", timezone.now())


def _suspended_and_back(user: User, settings: Settings) -> None:
    _suspended(user, settings)
    for identity in user.identities.all():
        identities.admit(identity.account, identity.issuer, identity.subject, ["operator"], timezone.now())


def _unseen(user: User, settings: Settings) -> None:
    user.identities.update(valid_until=timezone.now() - timedelta(days=1))


def _named_again(user: User, settings: Settings) -> None:
    """Another login of the user at the provider, from another browser."""
    for identity in user.identities.all():
        identities.admit(identity.account, identity.issuer, identity.subject, ["operator"], timezone.now())


def _disabled(user: User, settings: Settings) -> None:
    users.disable(user)


def _disabled_by_sql(user: User, settings: Settings) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _disabled_and_back(user: User, settings: Settings) -> None:
    users.disable(user)
    users.enable(user)


def _deleted(user: User, settings: Settings) -> None:
    users.delete(user)


def _new_password(user: User, settings: Settings) -> None:
    users.set_password(user, "another correct horse")


def _factor_added(user: User, settings: Settings) -> None:
    Authenticator.objects.create(user=user, type="recovery_codes", data={"seed": "x"})


def _factor_removed(user: User, settings: Settings) -> None:
    codes = Authenticator.objects.create(user=user, type="recovery_codes", data={"seed": "x"})
    users.remove_factor(codes)


def _sessions_ended(user: User, settings: Settings) -> None:
    call_command("account", "end-sessions", user.username)


def _role_revoked(user: User, settings: Settings) -> None:
    for grant in roles.grants_of(user):
        roles.revoke(user, grant)


def _role_granted(user: User, settings: Settings) -> None:
    roles.grant(user, Grant(UserRole.SCHEDULER))


def _disconnected_by_sql(user: User, settings: Settings) -> None:
    for identity in user.identities.all():
        identity.account.delete()


def _disconnected(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(None)
    user.set_password(builders.PASSWORD)  # a door that remains
    for identity in user.identities.all():
        identities.disconnect(identity)


def _door_closed(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"chief"}))


def _opening_over(user: User, settings: Settings) -> None:
    call_command("account", "open", user.username, "--minutes", "0")


# Logins.


def _local(user: User, op: OpenIdProvider, settings: Settings) -> None:
    pass


def _both(user: User, op: OpenIdProvider, settings: Settings) -> None:
    roles.grant(user, Grant(UserRole.OPERATOR))
    identity_of(user, "operator")


def _opened(user: User, op: OpenIdProvider, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset())
    identity_of(user, "operator")
    call_command("account", "open", user.username)


def _of_provider(user: User, op: OpenIdProvider, settings: Settings) -> None:
    """Make the provider name *user*."""
    identity_of(user, "viewer", issuer=op.issuer, subject=op.claims["sub"], is_verified=True)


LOGINS: Mapping[str, Callable[[User, OpenIdProvider, Settings], None]] = {
    "local": _local,
    "of both": _both,
    "opened by command": _opened,
    "provider": _of_provider,
}
ALL, NONE = set(LOGINS), set[str]()
WITH_IDENTITY = ALL - {"local"}
EVENTS: Mapping[Callable[[User, Settings], None], set[str]] = {
    _nothing: NONE,
    _suspended: WITH_IDENTITY,
    _suspended_and_back: WITH_IDENTITY,
    _unseen: {"opened by command", "provider"},
    _named_again: NONE,
    _disabled: ALL,
    _disabled_by_sql: ALL,
    _disabled_and_back: ALL,
    _deleted: ALL,
    _new_password: ALL,
    _factor_added: ALL,
    _factor_removed: ALL,
    _sessions_ended: ALL,
    _role_revoked: {"of both"},
    _role_granted: NONE,
    _disconnected_by_sql: {"provider"},
    _disconnected: WITH_IDENTITY,
    _door_closed: {"local", "of both"},
    _opening_over: {"opened by command"},
}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
@pytest.mark.parametrize("login", LOGINS)
def test_a_login_that_waits_for_its_second_factor_after_each_event(
    login: str,
    event: Callable[[User, Settings], None],
    reader: User,
    op: OpenIdProvider,
    browser: Client,
    settings: Settings,
) -> None:
    builders.user(f"{reader}-chief", is_superuser=True)
    LOGINS[login](reader, op, settings)
    secret = give_app(reader)
    step = op.log_in(browser) if login == "provider" else log_in(browser, reader)
    assert step["Location"] == STEP
    event(User.objects.get(pk=reader.pk), settings)
    answer = browser.post(STEP, {"code": code_of(secret)})
    has_logged_in = AuditEvent.objects.filter(changes__contains=[{"kind": "session", "after": "logged in"}])
    is_ended = login in EVENTS[event]
    assert (answer["Location"] == "/login/") == is_ended
    assert has_logged_in.exists() != is_ended
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(None)
    _named_again(reader, settings)
    assert ("_auth_user_id" in browser.session) != is_ended, "nothing wakes up on return"


@pytest.mark.parametrize(
    "event", [_disabled_and_back, _factor_added, _new_password, _sessions_ended, _suspended_and_back]
)
@pytest.mark.parametrize("when", ["before it is checked", "before it is committed"])
def test_an_event_ends_a_login_that_is_under_way(
    event: Callable[[User, Settings], None],
    when: str,
    reader: User,
    browser: Client,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event sees no session to end: none is committed yet."""
    roles.grant(reader, Grant(UserRole.OPERATOR))
    identity_of(reader, "operator")
    stage = login_stage.BeginStage if when == "before it is checked" else login_stage.CompleteStage
    handle = stage.handle

    def interrupted(self: login_stage.BeginStage | login_stage.CompleteStage) -> object:
        answer = handle(self)
        event(User.objects.get(pk=reader.pk), settings)
        return answer

    monkeypatch.setattr(stage, "handle", interrupted)
    log_in(browser, reader)
    assert not is_logged_in(browser)


@pytest.mark.parametrize("event", [_disabled_and_back, _new_password, _sessions_ended, _suspended_and_back])
def test_an_event_ends_a_session_that_no_list_has(
    event: Callable[[User, Settings], None], reader: User, browser: Client, settings: Settings
) -> None:
    roles.grant(reader, Grant(UserRole.OPERATOR))
    identity_of(reader, "operator")
    log_in(browser, reader)
    assert is_logged_in(browser)
    UserSession.objects.all().delete()
    event(User.objects.get(pk=reader.pk), settings)
    assert not is_logged_in(browser)


# What one login leaves to the next one in the same browser.


@dataclass
class Ways:
    """All ways to log in with one account, whose identity the provider names with a second factor."""

    op: OpenIdProvider
    user: User
    secret: str
    device: Device

    def password(self, browser: Client) -> None:
        log_in(browser, self.user)
        browser.post(STEP, {"code": code_of(self.secret)})
        Authenticator.objects.filter(type="totp").update(data={"secret": get_adapter().encrypt(self.secret)})

    def passkey(self, browser: Client) -> None:
        browser.post("/login/passkey/", {"credential": self.device.authenticate(login_options(browser))})

    def provider(self, browser: Client) -> None:
        self.op.log_in(browser)
        browser.post(STEP, {"code": code_of(self.secret)})
        Authenticator.objects.filter(type="totp").update(data={"secret": get_adapter().encrypt(self.secret)})


WAYS = ("password", "passkey", "provider")


@pytest.fixture
def ways(op: OpenIdProvider, reader: User, browser_elsewhere: Browsers, settings: Settings) -> Ways:
    settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES = frozenset({"mfa"})
    op.claims["amr"] = ["mfa"]
    roles.grant(reader, Grant(UserRole.OPERATOR))
    _of_provider(reader, op, settings)
    own, device, page = browser_elsewhere(), Device(), "/account/passkeys/add/"
    own.defaults["SERVER_NAME"] = "localhost"
    own.force_login(reader)
    credential = device.register(options_of(as_confirmed(own, reader), page))
    own.post(page, {"name": "Key", "credential": credential, "passwordless": "on"})
    return Ways(op, reader, give_app(reader), device)


def stored(browser: Client) -> dict[str, object]:
    """Return what the session of *browser* has stored, without its times and random values."""
    kept = dict(browser.session)
    chosen = (IDENTITY_KEY, PROVIDER_FACTOR, sessions.ENDED_KEY)
    steps = [(step["method"], step.get("type"), step.get("reauthenticated")) for step in kept[STEPS]]
    return {"steps": steps, **{key: kept.get(key) for key in chosen}}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_a_login_finds_nothing_of_an_earlier_one_in_its_browser(
    first: str, second: str, ways: Ways, browser_elsewhere: Browsers
) -> None:
    fresh, used = browser_elsewhere(), browser_elsewhere()
    for browser in (fresh, used):
        browser.defaults["SERVER_NAME"] = "localhost"
    getattr(ways, first)(used)
    as_confirmed(used, ways.user)
    left = used.session
    left["of the earlier login"] = "x"
    left.save()
    sessions.end_all(ways.user)
    left.save(must_create=True)  # as one whose user is not admitted for a while
    assert not is_logged_in(used)
    getattr(ways, second)(used)
    getattr(ways, second)(fresh)
    assert is_logged_in(used)
    assert set(used.session.keys()) <= set(fresh.session.keys())
    assert stored(used) == stored(fresh)


def test_a_login_by_password_does_not_act_by_an_identity_of_before(reader: User, browser: Client) -> None:
    roles.grant(reader, Grant(UserRole.VIEWER))
    identity = identity_of(reader, "operator")
    browser.force_login(reader)
    session = browser.session
    session[IDENTITY_KEY] = identity.pk
    session.save()
    _unseen(reader, None)  # type: ignore[arg-type]
    assert not is_logged_in(browser)
    log_in(browser, reader)
    assert is_logged_in(browser)


def test_an_earlier_login_by_passkey_replaces_no_second_factor(ways: Ways, browser: Client) -> None:
    browser.defaults["SERVER_NAME"] = "localhost"
    ways.passkey(browser)
    left = dict(browser.session)
    del left["_auth_user_id"]
    browser.post("/logout/")
    session = browser.session
    session.update(left)
    session.save()
    browser.cookies["sessionid"] = str(session.session_key)
    assert log_in(browser, ways.user)["Location"] == STEP
