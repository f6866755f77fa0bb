"""Each door of an account after each event: a dismissed user comes in nowhere, and any other user does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_network

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import AnonymousUser, User
from django.core.mail import EmailMessage
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, AuditEvent, Identity
from monitor.models.role import UserRole, act_as, acting, roles_of
from monitor.models.role import identity_of as acting_identity
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts import account_checks, doors, identities, mail, users
from monitor.web.accounts.environment import LocalLogin, RemoteUser
from monitor.web.accounts.sessions import IDENTITY_KEY
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import log_in
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
Browsers = Callable[[], Client]
NOBODY = LocalLogin(frozenset())


# Accounts. Each has a password, of which that of the provider's account may be older than its identity.


def _local(user: User) -> None:
    pass


def _granted(user: User) -> None:
    roles.grant(user, Grant(UserRole.OPERATOR))


def _of_provider(user: User) -> None:
    identity_of(user, "operator")


def _of_both(user: User) -> None:
    _granted(user)
    _of_provider(user)


ACCOUNTS: Mapping[str, Callable[[User], None]] = {
    "local": _local,
    "granted": _granted,
    "of the provider": _of_provider,
    "of both": _of_both,
}


# Events.


def _nothing(user: User, settings: Settings) -> None:
    pass


def _refused(user: User, settings: Settings) -> None:
    for identity in user.identities.all():
        identities.suspend(identity, "no group", timezone.now())


def _back(user: User, settings: Settings) -> None:
    _refused(user, settings)
    for identity in user.identities.all():
        identities.admit(identity.account, identity.issuer, identity.subject, ["operator"], timezone.now())


def _unseen(user: User, settings: Settings) -> None:
    now = timezone.now()
    user.identities.update(verified_at=now - timedelta(days=15), valid_until=now - timedelta(days=1))


def _clock_back(user: User, settings: Settings) -> None:
    """A clock that was ahead wrote times of the future; the identity stays in force until it is due."""
    now = timezone.now()
    user.identities.update(verified_at=now + timedelta(days=1), valid_until=now + timedelta(days=15))


def _disabled(user: User, settings: Settings) -> None:
    users.disable(user)


def _disabled_by_sql(user: User, settings: Settings) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _enabled_again(user: User, settings: Settings) -> None:
    users.disable(user)
    users.enable(user)


def _new_password(user: User, settings: Settings) -> None:
    users.set_password(user, builders.PASSWORD)


def _factor_removed(user: User, settings: Settings) -> None:
    users.remove_factor(Authenticator.objects.create(user=user, type="totp", data={"secret": "x"}))


def _revoked(user: User, settings: Settings) -> None:
    for grant in roles.grants_of(user):
        roles.revoke(user, grant)


def _granted_late(user: User, settings: Settings) -> None:
    _refused(user, settings)
    roles.grant(user, Grant(UserRole.VIEWER))


def _disconnected(user: User, settings: Settings) -> None:
    for identity in user.identities.all():
        identities.disconnect(identity)


def _only_others(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"chief"}))


def _in_the_list(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({"chief", user.username}))


def _nobody(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = NOBODY


def _opened(user: User, settings: Settings) -> None:
    settings.GRIDCAST_LOCAL_LOGIN = NOBODY
    call_command("account", "open", user.username)


def _closed_again(user: User, settings: Settings) -> None:
    _opened(user, settings)
    call_command("account", "open", user.username, "--minutes", "0")


LOCAL, ALL, NONE = {"local", "granted", "of both"}, set(ACCOUNTS), set[str]()
NOT_BY_IDENTITY = {"local", "granted"}


@dataclass(frozen=True)
class Event:
    """*happens*, and the accounts that come in afterwards; *session* and *token* are of before."""

    happens: Callable[[User, Settings], None]
    password: set[str]
    proxy: set[str]
    session: set[str]
    token: set[str]


EVENTS: Mapping[str, Event] = {
    "nothing": Event(_nothing, LOCAL, LOCAL, ALL, ALL),
    "refused by the provider": Event(_refused, LOCAL, LOCAL, NOT_BY_IDENTITY, NOT_BY_IDENTITY),
    "refused, and admitted again": Event(_back, LOCAL, LOCAL, NOT_BY_IDENTITY, ALL),
    "no login for long": Event(_unseen, LOCAL, LOCAL, NOT_BY_IDENTITY, NOT_BY_IDENTITY),
    "clock back": Event(_clock_back, LOCAL, LOCAL, ALL, ALL),
    "disabled": Event(_disabled, NONE, NONE, NONE, NONE),
    "disabled by SQL": Event(_disabled_by_sql, NONE, NONE, NONE, NONE),
    "disabled, and enabled again": Event(_enabled_again, LOCAL, LOCAL, NONE, ALL),
    "password set by an administrator": Event(_new_password, LOCAL, LOCAL, NONE, ALL),
    "factor removed by an administrator": Event(_factor_removed, LOCAL, LOCAL, NONE, ALL),
    "role lost": Event(_revoked, NOT_BY_IDENTITY, NOT_BY_IDENTITY, ALL, ALL),
    "role granted after refusal": Event(_granted_late, ALL, ALL, NOT_BY_IDENTITY, NOT_BY_IDENTITY),
    "last identity disconnected": Event(_disconnected, ALL, ALL, NOT_BY_IDENTITY, NOT_BY_IDENTITY),
    "another account is listed": Event(_only_others, NONE, LOCAL, ALL, ALL),
    "the account is listed": Event(_in_the_list, LOCAL, LOCAL, ALL, ALL),
    "no local login": Event(_nobody, NONE, LOCAL, ALL, ALL),
    "opened by command": Event(_opened, ALL, LOCAL, ALL, ALL),
    "opened, and closed again": Event(_closed_again, NONE, LOCAL, ALL, ALL),
}


def _session(browser: Client, user: User) -> Client:
    browser.force_login(user)
    session = browser.session
    session[IDENTITY_KEY] = user.identities.values_list("pk", flat=True).first()
    session.save()
    UserSession.objects.create(user=user, session_key=session.session_key, ip="192.0.2.1")
    return browser


def _token(user: User) -> str:
    act_as(user, user.identities.values_list("pk", flat=True).first())
    return ApiToken.objects.issue(user, "program", ["read"])


def _reads(browser: Client) -> bool:
    """Return whether the browser is shown the runs, and not the login page."""
    return browser.get("/runs/").status_code == 200


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("account", ACCOUNTS)
def test_each_door_after_each_event(
    account: str, event: str, reader: User, browser_elsewhere: Browsers, settings: Settings
) -> None:
    builders.user(f"{reader.username}-chief", is_superuser=True)
    ACCOUNTS[account](reader)
    before, token = _session(browser_elsewhere(), reader), _token(reader)
    assert _reads(before)
    row = EVENTS[event]
    row.happens(User.objects.get(pk=reader.pk), settings)

    browser = browser_elsewhere()
    log_in(browser, reader)
    program = Client(headers={"Authorization": f"Bearer {token}"})
    settings.GRIDCAST_PROXIES = Proxies((ip_network("192.0.2.0/24"),), is_unix=False)
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", settings.GRIDCAST_PROXIES, "")
    proxied = Client(REMOTE_ADDR="192.0.2.7", headers={"Remote-User": reader.username})
    comes_in = {
        "password": _reads(browser),
        "proxy": _reads(proxied),
        "session": _reads(before),
        "token": program.get("/api/v1/me").status_code == 200,
    }
    assert comes_in == {door: account in getattr(row, door) for door in comes_in}


def test_a_door_that_is_closed_says_why(reader: User, browser: Client, settings: Settings) -> None:
    identity = identity_of(reader, "operator")
    page = log_in(browser, reader)
    assert (page.status_code, "No local login" in page.content.decode()) == (403, True)
    identities.suspend(identity, "Grid Login named no group with a role", timezone.now())
    assert "Grid Login named no group with a role" in log_in(browser, reader).content.decode()


def test_a_listed_account_without_a_role_granted_here_is_told_so_and_checked(
    reader: User, browser: Client, settings: Settings
) -> None:
    identity_of(reader, "operator")
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset({reader.username}))
    page = log_in(browser, reader)
    assert (page.status_code, f"access grant {reader} ROLE" in page.content.decode()) == (403, True)
    assert not AuditEvent.objects.filter(changes__contains=[{"kind": "session"}]).exists()
    [fault] = [each for each in account_checks.accounts() if each.id == "monitor.W018"]
    assert f"no role is granted here to {reader}:" in fault.msg
    roles.grant(reader, Grant(UserRole.VIEWER))
    assert log_in(browser, reader).status_code == 302
    assert not [each for each in account_checks.accounts() if each.id == "monitor.W018"]


def test_a_command_opens_a_door_only_to_a_user_that_has_a_role_then(reader: User) -> None:
    identity = identity_of(reader, "operator")
    identities.suspend(identity, "no group", timezone.now())
    with pytest.raises(CommandError, match=r"no role granted here, and none by the provider \(no group\)"):
        call_command("account", "open", reader.username)
    with pytest.raises(CommandError, match="--minutes: expected 0 to"):
        call_command("account", "open", reader.username, "--minutes", "-1")
    User.objects.filter(pk=reader.pk).update(is_active=False)
    with pytest.raises(CommandError, match="is disabled"):
        call_command("account", "open", reader.username)


def test_a_session_has_the_roles_of_the_identity_that_logged_in_and_no_other(reader: User) -> None:
    operator, viewer = identity_of(reader, "operator"), identity_of(reader, "viewer")
    roles.grant(reader, Grant(UserRole.SCHEDULER))
    by = {
        identity: roles_of(acting(User.objects.get(pk=reader.pk), identity) or AnonymousUser())
        for identity in (operator.pk, viewer.pk, None)
    }
    assert by == {
        operator.pk: {"operator", "scheduler"},
        viewer.pk: {"viewer", "scheduler"},
        None: {"scheduler"},
    }


def test_an_identity_of_another_user_admits_to_nothing(reader: User) -> None:
    other = identity_of(builders.user(f"{reader.username}-other"), "administrator")
    assert acting(reader, other.pk) is None


def test_an_identity_without_a_login_for_long_is_suspended_with_an_event(
    reader: User, browser: Client, settings: Settings
) -> None:
    now = timezone.now()
    identity = identity_of(reader, "operator", verified_at=now - timedelta(days=10))
    _session(browser, reader)
    identities.suspend_overdue(now)
    assert Identity.objects.get().suspended == ""
    settings.GRIDCAST_OIDC_VALID_DAYS = 9
    identities.suspend_overdue(now)
    identity.refresh_from_db()
    assert identity.suspended == "no login by the provider for 9 days"
    assert UserSession.objects.count() == 0
    event = AuditEvent.objects.get(action="identity suspended")
    assert (event.channel, event.changes[-1]["after"]) == ("service", f"suspended: {identity.suspended}")


@pytest.mark.django_db(transaction=True)
def test_a_shorter_term_suspends_also_the_last_administrator(reader: User, settings: Settings) -> None:
    now = timezone.now()
    for user, role in ((reader, "administrator"), (builders.user(f"{reader}-other"), "operator")):
        identity_of(user, role, verified_at=now - timedelta(days=10), valid_until=now + timedelta(days=4))
    settings.GRIDCAST_OIDC_VALID_DAYS = 9
    assert identities.suspend_overdue(now) == 2


@pytest.mark.django_db(transaction=True)
def test_an_identity_that_is_overdue_is_no_administrator_that_must_remain(
    reader: User, settings: Settings
) -> None:
    now = timezone.now()
    identity = identity_of(reader, "administrator", valid_until=now - timedelta(minutes=1))
    identities.disconnect(identity)
    assert not Identity.objects.exists()


def test_a_user_is_warned_three_days_before_by_pages_and_once_by_mail(
    reader: User, browser: Client, settings: Settings, mailoutbox: list[EmailMessage]
) -> None:
    settings.EMAIL_HOST = "mail.example.org"  # pytest-django's mailbox takes its place
    User.objects.filter(pk=reader.pk).update(email="ada@example.org")
    now = timezone.now()
    identity = identity_of(reader, "viewer", valid_until=now + timedelta(days=4))
    _session(browser, reader)
    assert identities.warn_ahead(now) == 0
    assert "Log in at the identity provider before" not in browser.get("/account/").content.decode()
    later = now + timedelta(days=1, minutes=1)
    assert [identities.warn_ahead(later), identities.warn_ahead(later)] == [1, 0]
    mail.deliver_due(later)
    [sent] = mailoutbox
    assert sent.to == ["ada@example.org"]
    assert f"before {identity.valid_until:%Y-%m-%d %H:%M} UTC" in sent.body
    Identity.objects.update(valid_until=now + timedelta(days=2))
    assert "Log in at the identity provider before" in browser.get("/account/").content.decode()
    identities.admit(identity.account, identity.issuer, identity.subject, ["viewer"], now)
    assert identities.warn_ahead(now + timedelta(days=12)) == 1, "again before the next end"


def test_a_refusal_of_the_last_administrator_is_logged_with_the_way_back(
    reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    identities.suspend(identity_of(reader, "administrator"), "no group", timezone.now())
    assert "no active administrator is left: grant the role on this host" in caplog.text


def test_a_page_that_asks_for_doors_leaves_the_session_as_it_is(reader: User) -> None:
    """Else the rest of the page would have other roles."""
    identity = identity_of(reader, "operator")
    user = acting(reader, identity.pk)
    assert user is not None
    now = timezone.now()
    assert not doors.has_local_door(user, now)
    assert doors.identity_of_local_login(user, now) is None
    assert roles.usual_identity(user) == identity.pk
    assert acting_identity(user) == identity.pk
    assert roles_of(user) == {"operator"}
