"""Checks of the accounts in the depot, by ``manage.py check``: who can log in, and unclear roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.db import Error as DatabaseError
from django.db.models import Q
from django.utils import timezone

from monitor.depot.access.roles import grants_of
from monitor.models import Identity
from monitor.models.role import UserRole, acting, is_administrator, is_admitted
from monitor.web.accounts import door_reasons, doors
from monitor.web.accounts.environment import EVERYBODY, NOBODY

if TYPE_CHECKING:
    from datetime import datetime

ACCOUNTS = "accounts"
MOST_NAMED = 20
_EMERGENCY_HINT = (
    "manage.py account create USER, account enable USER, account password USER and access grant USER"
    " administrator mend what is missing."
)


@register(ACCOUNTS)
def accounts(**_: Any) -> list[CheckMessage]:
    """Return what ``GRIDCAST_LOCAL_LOGIN`` lacks, whether administrators can log in, and unclear roles."""
    try:
        emergency = _emergency_accounts()
        is_told = any(isinstance(fault, Error) for fault in emergency)
        return [*emergency, *([] if is_told else _locked_out(timezone.now())), *_unclear_roles()]
    except DatabaseError as error:
        reason = str(error).partition("\n")[0]
        return [
            Info(f"The accounts were not checked: the depot does not answer: {reason}", id="monitor.I001")
        ]


def _emergency_accounts() -> list[CheckMessage]:
    names = settings.GRIDCAST_LOCAL_LOGIN.names
    if not names:
        return []
    rows = User.objects.filter(username__in=names)
    faults: list[CheckMessage] = []
    if missing := sorted(names - set(rows.values_list("username", flat=True))):
        message = f"GRIDCAST_LOCAL_LOGIN names accounts that do not exist: {', '.join(missing)}."
        faults.append(Warning(message, hint="Correct or remove the names.", id="monitor.W014"))
    closed = [user.get_username() for user in rows.filter(is_active=True) if not is_admitted(user, None)]
    if closed:
        message = (
            f"GRIDCAST_LOCAL_LOGIN: no role is granted here to {', '.join(sorted(closed))}: their roles come"
            " from the identity provider alone, so neither password nor passkey logs them in."
        )
        hint = "Grant one: manage.py access grant USER ROLE"
        faults.append(Warning(message, hint=hint, id="monitor.W018"))
    accounts = {user.get_username(): user for user in rows}
    reasons = {name: _not_for_emergencies(accounts.get(name)) for name in sorted(names)}
    if all(reasons.values()):
        message = (
            f"GRIDCAST_LOCAL_LOGIN: expected {EVERYBODY}, {NOBODY}, or names of accounts, separated by"
            " commas, with an active administrator with a password among them: without one, nothing opens"
            " the service while the provider is away."
        )
        shown = "; ".join(f"{name} {reason}" for name, reason in list(reasons.items())[:MOST_NAMED])
        faults.append(Error(f"{message} {shown}.", hint=_EMERGENCY_HINT, id="monitor.E019"))
    return faults


def _not_for_emergencies(user: User | None) -> str:
    """Return why *user* cannot open the service while the provider is away; empty: it can."""
    if user is None:
        return "does not exist"
    if not user.is_active:
        return "is disabled"
    if not user.is_superuser:
        return "is no administrator by a role granted here"
    return "" if user.has_usable_password() else "has no password"


def _locked_out(now: datetime) -> list[CheckMessage]:
    """Return a message if no administrator can log in, although there are accounts."""
    named = Identity.objects.filter(roles__contains=[UserRole.ADMINISTRATOR])
    is_administrator = Q(is_superuser=True) | Q(pk__in=named.values("user"))
    administrators = User.objects.filter(is_administrator, is_active=True).order_by("username")
    if any(_logs_in_as_administrator(user, now) for user in administrators) or not User.objects.exists():
        return []
    shown = "; ".join(f"{user}: {_locked_because(user, now)}" for user in administrators[:MOST_NAMED])
    message = f"No administrator can log in: {shown}." if shown else "There is no active administrator."
    hint = "manage.py access grant USER administrator, and manage.py account password USER"
    if settings.GRIDCAST_LOCAL_LOGIN.names is not None:
        hint += (
            ", and name USER in GRIDCAST_LOCAL_LOGIN, or open the account for a while: manage.py account open"
            " USER"
        )
    return [Warning(message, hint=hint, id="monitor.W023")]


def _logs_in_as_administrator(user: User, now: datetime) -> bool:
    """Return whether a login that is open to *user* has the role, and not only fewer ones."""
    by = (acting(user, identity) for identity in doors.identities_of_logins(user, now))
    return any(actor is not None and is_administrator(actor) for actor in by)


def _locked_because(user: User, now: datetime) -> str:
    """Return why *user*, an administrator here or by an identity, cannot log in as one."""
    if user.is_superuser:
        return door_reasons.locked_because(user, now)
    named = user.identities.filter(roles__contains=[UserRole.ADMINISTRATOR]).order_by("-verified_at")
    return door_reasons.source_of_roles(named[0], now)


def _unclear_roles() -> list[CheckMessage]:
    """Return a message with the roles that stayed granted here at the upgrade, and still are."""
    unclear = []
    for identity in Identity.objects.exclude(kept_here=[]).select_related("user"):
        still = {str(grant) for grant in grants_of(identity.user)} & set(identity.kept_here)
        unclear += [f"{identity.user}: {role}" for role in sorted(still)]
    if not unclear:
        return []
    more = f" and {len(unclear) - MOST_NAMED} more" if len(unclear) > MOST_NAMED else ""
    message = (
        "Roles that stayed granted here at the upgrade, though the provider may have named them:"
        f" {', '.join(unclear[:MOST_NAMED])}{more}."
    )
    hint = "They count without the provider. Revoke those that it decides: manage.py access revoke USER ROLE"
    return [Warning(message, hint=hint, id="monitor.W016")]
