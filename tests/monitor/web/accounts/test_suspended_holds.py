"""Holds of an identity that was suspended for a while: their history says when they were in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from monitor.depot.access.audit_trail import audit_trail
from monitor.models import Hold, Identity, Site
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.runs.ledger import holds
from monitor.web.accounts import identities
from tests.monitor.web.accounts.identities import identity_of

pytestmark = pytest.mark.django_db
SITE = Scope(HoldKind.SITE, "ncsa")
BEGAN, CEASED, MEANWHILE = (timedelta(hours=-hours) for hours in (4, 3, 1))


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def identity(reader: User, now: datetime) -> Identity:
    """An identity whose hold began four hours ago."""
    Site.objects.create(name="ncsa")
    return identity_of(reader, "operator", verified_at=now + BEGAN, valid_until=now + timedelta(days=14))


def hold(identity: Identity, at: datetime, until: datetime | None = None) -> Hold:
    who = str(identity.user)
    return holds.hold(SITE, HoldMode.PAUSE, who=who, why="swap", now=at, until=until, identity=identity.pk)


def covered(now: datetime) -> list[bool]:
    """Return whether a hold covers times before it, before the suspension, twice in it, and after it."""
    times = (now + timedelta(hours=hours) for hours in (-4.5, -3.5, -2.5, -0.5, 0.5))
    return [Hold.objects.covering(time).exists() for time in times]


def log_in_there(identity: Identity, now: datetime) -> None:
    identities.admit(identity.account, identity.issuer, identity.subject, ["operator"], now)


# Ways in which an identity ceases to be in force, three hours ago.


def _suspended(identity: Identity, now: datetime) -> None:
    identities.suspend(identity, "logged out", now + CEASED)


def _overdue(identity: Identity, now: datetime) -> None:
    """The housekeeping has not run since."""
    Identity.objects.filter(pk=identity.pk).update(valid_until=now + CEASED)


def _suspended_late(identity: Identity, now: datetime) -> None:
    """The housekeeping has run an hour ago only."""
    Identity.objects.filter(pk=identity.pk).update(verified_at=now + CEASED - timedelta(days=14))
    identities.suspend_overdue(now + MEANWHILE)


CESSATIONS: Mapping[str, Callable[[Identity, datetime], None]] = {
    "suspended": _suspended,
    "overdue": _overdue,
    "suspended late": _suspended_late,
}

# What becomes of the hold meanwhile, and whether it is in force again after the next login.


def _nothing(now: datetime) -> None:
    pass


def _resumed(now: datetime) -> None:
    holds.resume(SITE, who="bob", why="back", now=now + MEANWHILE)


CHANGES: Mapping[str, tuple[Callable[[datetime], None], timedelta | None, bool]] = {
    "nothing": (_nothing, None, True),
    "it goes on for long": (_nothing, timedelta(days=2), True),
    "its time is over": (_nothing, MEANWHILE, False),
    "resumed": (_resumed, None, False),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cessation", CESSATIONS)
@pytest.mark.parametrize("is_disconnected_later", [True, False])
def test_a_hold_did_not_cover_the_time_of_a_suspension_that_is_over(
    cessation: str, change: str, is_disconnected_later: bool, identity: Identity, now: datetime
) -> None:
    happens, lasting, is_in_force = CHANGES[change]
    hold(identity, now + BEGAN, None if lasting is None else now + lasting)
    CESSATIONS[cessation](identity, now)
    happens(now)
    assert covered(now)[:4] == [False, True, False, False]
    log_in_there(identity, now)
    if is_disconnected_later:
        identity.account.delete()
    holds.end_overdue(now)
    assert covered(now) == [False, True, False, False, is_in_force]
    assert Hold.objects.at(now).exists() == is_in_force


def test_a_hold_that_another_one_replaced_stays_replaced(identity: Identity, now: datetime) -> None:
    other = identity_of(identity.user, "operator")
    hold(identity, now + BEGAN)
    _suspended(identity, now)
    replacing = hold(other, now + MEANWHILE)
    log_in_there(identity, now)
    assert list(Hold.objects.at(now)) == [replacing]
    assert covered(now) == [False, True, False, True, True]


def test_a_hold_that_is_in_force_again_is_in_the_audit_record(identity: Identity, now: datetime) -> None:
    hold(identity, now + BEGAN)
    _suspended(identity, now)
    with audit_trail() as trail:
        log_in_there(identity, now)
    [change] = [each for each in trail.changes if each["kind"] == "hold"]
    assert (change["before"], change["after"]) == ("not in force: logged out", "in force again")
