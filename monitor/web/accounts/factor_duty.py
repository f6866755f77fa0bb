"""Roles that need a second factor (``GRIDCAST_SECOND_FACTOR_ROLES``), and until when their users may lack it.

A user's term begins when it gets such a role, or when gridcast first runs with a setting that names one of
its roles. The housekeeping notices both within minutes, also of users that are not logged in, and a request
of the user at once. The beginning is a row of its own, because the same rule holds for roles that are granted
here and for those of an identity provider's groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from monitor.core.db import binary
from monitor.models import SecondFactorTerm, UserRole
from monitor.models.role import roles_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.models import Identity

# Users with one of the roles, granted here or by any identity. Disabled users and suspended identities count:
# otherwise the term would begin again with each return, and never be over.
_HOLDERS = """
SELECT id FROM auth_user WHERE is_superuser AND 'administrator' = ANY (%(roles)b::text[])
UNION
SELECT member.user_id FROM auth_user_groups AS member JOIN auth_group AS role ON role.id = member.group_id
WHERE role.name = ANY (%(roles)b::text[])
UNION
SELECT identity.user_id FROM monitor_identity AS identity, unnest(identity.roles) AS named
WHERE split_part(named, ':', 1) = ANY (%(roles)b::text[])
"""
PROVIDER_FACTOR = "gridcast_provider_factor"  # in a session: its login had a second factor at the provider
FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)  # recovery codes are none by themselves


@dataclass(frozen=True)
class FactorDuty:
    """The user of a session has *roles* that need a second factor, has none, and may go on until *until*."""

    roles: tuple[str, ...]
    until: datetime
    is_over: bool


def note_provider_factor(request: HttpRequest, amr: Iterable[str] = (), acr: str = "") -> None:
    """Store in the session of *request* whether the login that has just succeeded had a second factor.

    *amr* and *acr* are the claims of the identity provider, empty for all other logins. Call it after each
    login: one by another way takes back what an earlier login in the same browser has stored.
    """
    accepted = settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES
    request.session[PROVIDER_FACTOR] = acr in accepted or not accepted.isdisjoint(amr)


def factor_duty(request: HttpRequest) -> FactorDuty | None:
    """Return the duty of the user of *request*; None if there is none, or it is fulfilled.

    A proxy that names the user has authenticated it as it sees fit, so its users have none.
    """
    user = request.user
    if not settings.GRIDCAST_SECOND_FACTOR_ROLES or not isinstance(user, User) or not user.is_authenticated:
        return None
    roles = roles_of(user) & settings.GRIDCAST_SECOND_FACTOR_ROLES
    if not roles or hasattr(request, "is_named_by_proxy") or request.session.get(PROVIDER_FACTOR) is True:
        return None
    if Authenticator.objects.filter(user=user, type__in=FACTORS).exists():
        return None
    now = timezone.now()
    term, _ = SecondFactorTerm.objects.get_or_create(user=user, defaults={"began_at": now})
    until = term.began_at + timedelta(days=settings.GRIDCAST_SECOND_FACTOR_DAYS)
    return FactorDuty(tuple(role for role in UserRole.values if role in roles), until, until <= now)


def note_disconnected(identity: Identity, now: datetime) -> None:
    """Keep the term of the user of *identity*, which is being deleted, until it is connected again.

    Otherwise the user would have new days as often as it disconnects and connects.
    """
    brought = {role.partition(":")[0] for role in identity.roles}
    if not brought.isdisjoint(settings.GRIDCAST_SECOND_FACTOR_ROLES):
        SecondFactorTerm.objects.filter(user=identity.user_id).update(disconnected_at=now)


def keep_terms(now: datetime) -> None:
    """Begin the terms of users that have got a role that needs a second factor; end those of all others."""
    with binary.cursor() as cursor:
        roles = list(settings.GRIDCAST_SECOND_FACTOR_ROLES)
        holders = [user for (user,) in cursor.execute(_HOLDERS, {"roles": roles})]
    lost = SecondFactorTerm.objects.exclude(user__in=holders)
    (lost.filter(disconnected_at=None) if roles else lost).delete()
    held = SecondFactorTerm.objects.filter(user__in=holders)
    held.filter(disconnected_at__lt=now).update(disconnected_at=None)
    held.filter(began_at__gt=now).update(began_at=now)  # of a clock that was ahead
    terms = [SecondFactorTerm(user_id=user, began_at=now) for user in holders]
    SecondFactorTerm.objects.bulk_create(terms, ignore_conflicts=True)
