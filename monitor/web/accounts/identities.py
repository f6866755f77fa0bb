"""The identities of users: their roles as the provider names them, and their suspension.

A suspension is a state: the roles do not count while it lasts, and sessions end. Tokens, second factors and
the roles themselves stay stored, and count again after the next login that names a mapped group.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.access import audit, roles, tokens
from monitor.depot.access.audit import Action, Actor
from monitor.depot.access.audit_trail import audit_trail, note
from monitor.models import AlertRule, ApiToken, Hold, Identity, Webhook
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.models.hold import AUTHOR_WAS_SUSPENDED, IDENTITY_IS_GONE
from monitor.models.identity import MOST_PROVIDER_SESSIONS, MOST_REASON_CHARACTERS, names_of
from monitor.models.role import is_admitted
from monitor.web.accounts import doors, factor_duty, mail, sessions

if TYPE_CHECKING:
    from collections.abc import Collection

    from allauth.socialaccount.models import SocialAccount

logger = logging.getLogger(__name__)

WARNING = timedelta(days=3)


class NoDoorLeft(Exception):
    """The identity is not disconnected: its user could not log in any more."""


def uid_of(issuer: str, subject: str) -> str:
    """Return the ``uid`` of the account of *subject* at *issuer*, by which django-allauth finds its user.

    The issuer may have been named with or without the slash at its end before. An identity of before an
    upgrade belongs to the issuer that was configured then; where none was, to the first that verifies one.
    """
    own, names = Identity.objects.filter(subject=subject).select_related("account"), names_of(issuer)
    if identity := own.filter(issuer=issuer).first() or own.filter(issuer__in=names).first():
        return str(identity.account.uid)
    if not Identity.objects.filter(is_verified=True).exclude(issuer__in=names).exists() and (
        identity := own.filter(is_verified=False, issuer="").first()
    ):
        return str(identity.account.uid)
    key = hashlib.sha256(f"{issuer} {subject}".encode()).hexdigest()  # an issuer has no spaces
    return f"sha256:{key}"


@transaction.atomic
def admit(
    account: SocialAccount,
    issuer: str,
    subject: str,
    names: Collection[str],
    now: datetime,
    provider_session: str | None = None,
) -> Identity:
    """Store that the provider has named the roles *names* of *account* now; return its identity, in force.

    An identity of before that no verified token had named yet is bound to *issuer* by it. The login belongs
    to *provider_session* there, if the provider names its sessions.
    """
    Identity.objects.lock_of(account.user_id)
    identity = Identity.objects.filter(account=account).first() or Identity(
        account=account, user_id=account.user_id
    )
    is_new = not identity.pk
    before = sorted(identity.roles)
    suspension, ceased_at = ("", None) if is_new else (identity.suspension(now), identity.ceased_at(now))
    identity.issuer, identity.subject, identity.is_verified = issuer, subject, True
    identity.roles = sorted(names)
    identity.verified_at, identity.valid_until = now, now + timedelta(days=settings.GRIDCAST_OIDC_VALID_DAYS)
    identity.suspended, identity.suspended_at, identity.warned_at = "", None, None
    if provider_session is not None:
        others = [each for each in identity.provider_sessions if each != provider_session]
        identity.provider_sessions = [*others, provider_session][-MOST_PROVIDER_SESSIONS:]
    _permit_loss_of_last_administrator()
    identity.save()
    if is_new:
        note("identity", _name(identity), after="connected")
        _note_stopped(identity, now)
    if before != identity.roles:
        note("roles by the provider", _name(identity), before=before, after=identity.roles)
    if ceased_at is not None:
        note("identity", _name(identity), before=suspension, after="in force")
        _begin_holds_again(identity, suspension, ceased_at, now)
    return identity


def _permit_loss_of_last_administrator() -> None:
    """Let the transaction take the last administrator: what the provider says of a user holds at once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('gridcast.last_administrator_may_go', 'on', true)")


def _note_stopped(identity: Identity, now: datetime) -> None:
    """Note the tokens that stop because *identity* is the first of its user, and nothing is granted here.

    A local account without a role reads as a viewer, and with an identity no more. Its tokens do not act by
    *identity*: its roles may be more than their user had when they were issued.
    """
    user = identity.user
    if is_admitted(user, None) or user.identities.exclude(pk=identity.pk).exists():
        return
    for token in ApiToken.objects.filter(user=user, identity=None).usable(now):
        note("token", f"{user}: {token}", before="valid", after="stopped: no role is granted here")


def _begin_holds_again(identity: Identity, suspension: str, ceased_at: datetime, now: datetime) -> None:
    """Let the holds of *identity*, which is admitted again, end as of *ceased_at*, and others begin.

    None of them was in force since: the history of holds must say so when the suspension is forgotten.
    """
    holds = Hold.objects.filter(identity=identity)
    if not holds.ended_after(ceased_at).exists():
        return
    lock_until_commit(AdvisoryLock.CLAIM)  # no hold of the same scope is made meanwhile
    unended = holds.filter(ended_at=None).exclude(until__lte=now).order_by("pk")
    again = list(unended.select_for_update(of=("self",)))
    holds.end_as_of(ceased_at, AUTHOR_WAS_SUSPENDED)
    for hold in again:
        hold.pk, hold.began_at = None, now
        hold.save(force_insert=True)
        note("hold", str(hold), before=f"not in force: {suspension}", after="in force again")


@transaction.atomic
def suspend(identity: Identity, reason: str, now: datetime) -> None:
    """Let the roles of *identity* not count from now on, and end all sessions of its user.

    Without an effect if it was disconnected since the caller read it.
    """
    reason = reason[:MOST_REASON_CHARACTERS]
    Identity.objects.lock_of(identity.user_id)
    try:
        identity.refresh_from_db()
    except Identity.DoesNotExist:
        return
    sessions.end_all(identity.user)
    if identity.suspended:
        return
    _permit_loss_of_last_administrator()
    identity.suspended, identity.suspended_at = reason, now
    identity.save(update_fields=["suspended", "suspended_at"])
    note("identity", _name(identity), before="in force", after=f"suspended: {reason}")
    logger.warning("the identity %s of user %r is suspended: %s", identity, str(identity.user), reason)
    if not roles.has_administrator():
        logger.error(
            "no active administrator is left: grant the role on this host, manage.py access grant USER"
            " administrator, or let one log in here, manage.py account open USER"
        )


def ends_soon(identity: int | None, now: datetime) -> datetime | None:
    """Return when the roles of *identity* stop to count, if that is within three days; else None."""
    if identity is None:
        return None
    in_force = Identity.objects.in_force(now).filter(pk=identity, valid_until__lte=now + WARNING)
    return in_force.values_list("valid_until", flat=True).first()


def warn_ahead(now: datetime) -> int:
    """Mail the users whose identities end within three days without a login there, once; return their number.

    A user without a mail address, and one whose mail is not accepted, is told by the pages only.
    """
    rows = Identity.objects.in_force(now).filter(warned_at=None, valid_until__lte=now + WARNING)
    warned = 0
    for identity in list(rows.select_related("user")):
        end = f"{identity.valid_until:%Y-%m-%d %H:%M} UTC"
        text = (
            f"The roles of your account {identity.user} come from the identity {identity}. Log in with it"
            f" before {end}: without a login by then, sessions, tokens, alert rules and webhooks stop until"
            " the next one."
        )
        with transaction.atomic():
            if not rows.filter(pk=identity.pk).update(warned_at=now):  # its user has logged in meanwhile
                continue
            mail.enqueue(identity.user, "gridcast: log in again", text, now, until=identity.valid_until)
        logger.warning("the identity %s of user %r is suspended at %s", identity, str(identity.user), end)
        warned += 1
    return warned


def suspend_overdue(now: datetime) -> int:
    """Suspend the identities without a login for ``GRIDCAST_OIDC_VALID_DAYS``; return their number.

    Their roles have not counted since ``valid_until``, which follows a change of the variable here. A login
    in the future was stored by a clock that was ahead, and counts as one of now: no identity stays in force
    for longer than the variable says.
    """
    valid = timedelta(days=settings.GRIDCAST_OIDC_VALID_DAYS)
    in_force, valid_until = Identity.objects.filter(suspended=""), F("verified_at") + valid
    with transaction.atomic():
        _permit_loss_of_last_administrator()
        in_force.filter(verified_at__gt=now).update(verified_at=now)
        in_force.exclude(valid_until=valid_until).update(valid_until=valid_until)
    overdue, suspended = in_force.filter(valid_until__lte=now), 0
    for key, user in list(overdue.values_list("pk", "user")):
        with transaction.atomic(), audit_trail() as changes:
            Identity.objects.lock_of(user)
            identity = overdue.filter(pk=key).first()
            if identity is None:  # its user has logged in meanwhile
                continue
            suspend(identity, identity.suspension(now), now)
            action = Action(AuditChannel.SERVICE, "identity suspended", _name(identity), AuditOutcome.DONE, 0)
            audit.record(Actor(), action, now, changes)
            suspended += 1
    return suspended


@transaction.atomic
def disconnect(identity: Identity) -> None:
    """Remove *identity* and its account of the provider, with what acts by it, as ``end_acts`` says.

    Without an effect if another transaction has just removed it.

    Raises:
        NoDoorLeft: the user could not log in any more.
        LastAdministrator: the user is the last active administrator, by this identity.
    """
    Identity.objects.lock_of(identity.user_id)
    present = Identity.objects.filter(pk=identity.pk).select_related("user", "account").first()
    if present is None:
        return
    if why := doors.no_door_without(present):
        raise NoDoorLeft(f"{present.user} could not log in any more: {why}")
    note("identity", _name(present), before="connected", after="disconnected")
    sessions.end_all(present.user)
    with roles.keeping_an_administrator(present.user):
        present.account.delete()


def end_acts(instance: Identity, **_: Any) -> None:
    """End what acts by an identity that is deleted by whatever way; a receiver of ``pre_delete``.

    Nothing that was made under it goes on with other roles: its tokens are revoked; its alert rules and
    webhooks have no author any more, and are suspended until a user saves them. A hold is a statement about
    the grid and stays, but one that is not in force, because its author was dismissed, ends.
    """
    now = timezone.now()
    Identity.objects.lock_of(instance.user_id)
    identity = Identity.objects.filter(pk=instance.pk).first()
    if identity is None:  # deleted by a transaction that has just committed
        return
    factor_duty.note_disconnected(identity, now)
    tokens.revoke(ApiToken.objects.filter(identity=identity), now)
    for model in (AlertRule, Webhook):
        model.objects.filter(identity=identity).update(author=None)
    ceased_at = identity.ceased_at(now)
    if ceased_at is None:
        return
    holds = Hold.objects.filter(identity=identity)
    for hold in holds.filter(ended_at=None).ended_after(ceased_at).order_by("pk"):
        reason = f"not in force: {identity.suspension(now)}"
        note("hold", str(hold), before=reason, after=f"ended: {IDENTITY_IS_GONE}")
    holds.end_as_of(ceased_at, IDENTITY_IS_GONE)


def _name(identity: Identity) -> str:
    return f"{identity.user}: {identity}"
