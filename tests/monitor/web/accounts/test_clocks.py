"""Times that a clock stored which was ahead, and is right again: nothing lasts or waits until then."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from importlib import import_module

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.models import AccountMail, DoorOpening, Hold, Identity, PasskeyChallenge, SecondFactorTerm
from monitor.models.passkey import MOST_OF_BROWSER, VALID, Ceremony
from monitor.web import accounts
from monitor.web.accounts import doors, factor_duty, identities, sessions
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import log_in

pytestmark = pytest.mark.django_db
AHEAD = timedelta(days=365)


def _login(user: User, now: datetime) -> bool:
    """A user that was dismissed does not stay in force for a year."""
    ahead = now + AHEAD
    identity_of(user, "operator", verified_at=ahead, valid_until=ahead + timedelta(days=14))
    identities.suspend_overdue(now)
    in_force = Identity.objects.in_force
    return in_force(now).exists() and not in_force(now + timedelta(days=14)).exists()


def _suspension(user: User, now: datetime) -> bool:
    """A hold of the identity ends now, when that is deleted, and not in a year."""
    identity = identity_of(user, "operator", suspended="no group", suspended_at=now + AHEAD)
    Hold.objects.create(
        kind="site", name="ncsa", mode="pause", who=str(user), identity=identity, why="x", began_at=now
    )
    identity.account.delete()
    return not Hold.objects.covering(timezone.now() + timedelta(seconds=1)).exists()


def _warning(user: User, now: datetime) -> bool:
    """The next login is warned of before its own end."""
    identity = identity_of(user, "operator", warned_at=now + AHEAD)
    identities.admit(identity.account, identity.issuer, identity.subject, ["operator"], now)
    return identities.warn_ahead(now + timedelta(days=12)) == 1


def _opened_door(user: User, now: datetime) -> bool:
    """Opened for an hour, it is not open for a year."""
    identity_of(user, "operator")
    DoorOpening.objects.create(user=user, until=now + AHEAD)
    return not doors.has_local_door(user, now)


def _term(user: User, now: datetime) -> bool:
    identity_of(user, "operator")
    factor_duty.keep_terms(now + AHEAD)
    factor_duty.keep_terms(now)
    return SecondFactorTerm.objects.get().began_at == now


def _disconnected_term(user: User, now: datetime) -> bool:
    """It is kept for the same user, and counts no days."""
    identity = identity_of(user, "operator")
    factor_duty.keep_terms(now)
    identity.account.delete()
    SecondFactorTerm.objects.update(disconnected_at=now + AHEAD)
    factor_duty.keep_terms(now)
    return SecondFactorTerm.objects.get().began_at == now


def _challenge(user: User, now: datetime) -> bool:
    """As many as a browser may have would otherwise make each new one surplus at once."""
    begin = PasskeyChallenge.objects.begin
    for number in range(MOST_OF_BROWSER):
        begin(f"ahead-{number}", Ceremony.LOGIN, "browser", None, now + AHEAD)
    PasskeyChallenge.objects.expire(now)
    begin("new", Ceremony.LOGIN, "browser", None, now)
    PasskeyChallenge.objects.expire(now)
    return PasskeyChallenge.objects.consume("new", Ceremony.LOGIN, "browser", None, now + VALID / 2)


def _use(user: User, now: datetime) -> bool:
    """The list of sessions shows the last use, and the session is not the last one to end of too many."""
    browser = Client(REMOTE_ADDR="192.0.2.9")
    log_in(browser, user)
    UserSession.objects.update(last_seen_at=now + AHEAD)
    request = HttpRequest()
    request.session = browser.session
    assert SESSION_KEY in request.session
    sessions.SessionUseMiddleware(lambda _: HttpResponse())(request)
    return not UserSession.objects.filter(last_seen_at__gt=timezone.now()).exists()


def _mail(user: User, now: datetime) -> bool:
    """It is sent at the next opportunity, and not in a year."""
    AccountMail.objects.create(user=user, subject="x", text="y", due_at=now + AHEAD, until=now + 2 * AHEAD)
    return AccountMail.objects.due(now).exists()


CHECKED: Mapping[str, Callable[[User, datetime], bool]] = {
    "identity.verified_at": _login,
    "identity.valid_until": _login,
    "identity.suspended_at": _suspension,
    "identity.warned_at": _warning,
    "dooropening.until": _opened_door,
    "secondfactorterm.began_at": _term,
    "secondfactorterm.disconnected_at": _disconnected_term,
    "passkeychallenge.expires_at": _challenge,
    "usersession.last_seen_at": _use,
    "accountmail.due_at": _mail,
}
# Why the times of a table need no test here, or one of them.
OTHERS: Mapping[str, str] = {
    "providermetadata": "tests/monitor/web/accounts/provider/test_metadata.py",
    "providerlogout": "the token, which is used up, is only kept for longer than it could be used",
    "session": "a session keeps the end that its login has stored; a dismissal ends it at once",
    "usersession.created_at": "shown only",
    "authenticator": "shown only",
    "accountmail.until": "the mail is sent, and not given up, for longer",
    "user": "shown only",
    "socialaccount": "not read",
    "socialtoken": "never stored",
    "apitoken": "monitor.depot.access judges it",
    "hold": "monitor.runs.ledger judges it",
    "webhook": "monitor.analysis.webhooks judges it",
}


@pytest.mark.parametrize("time", CHECKED)
def test_a_time_that_a_clock_ahead_has_stored_does_not_count_until_then(
    time: str, reader: User, settings: Settings
) -> None:
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset({"operator"})
    assert CHECKED[time](reader, timezone.now())


def test_each_time_that_the_accounts_compare_with_the_present_is_decided() -> None:
    imported = {
        value
        for module in pkgutil.walk_packages(accounts.__path__, f"{accounts.__name__}.")
        for value in vars(import_module(module.name)).values()
        if isinstance(value, type) and issubclass(value, models.Model) and not value._meta.abstract
    }
    times = {
        (str(model._meta.model_name), field.name)
        for model in imported
        for field in model._meta.get_fields()
        if isinstance(field, models.DateTimeField)
    }
    decided = CHECKED.keys() | OTHERS.keys()
    assert {f"{table}.{time}" for table, time in times if not {table, f"{table}.{time}"} & decided} == set()
    assert decided <= {name for table, time in times for name in (table, f"{table}.{time}")}
