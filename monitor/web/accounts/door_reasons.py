"""Why no password or passkey opens an account now, what opens it instead, and what an administrator can do.

Pages and commands show these words: the same reason reads alike wherever it appears.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from monitor.depot.access import roles
from monitor.models import DoorOpening
from monitor.models.role import is_admitted
from monitor.web.accounts import doors

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from monitor.models import Identity


@dataclass(frozen=True)
class ClosedDoor:
    """The local door of an account, which is closed.

    Attributes:
        reason: a clause, such as ``its roles come from Grid Login``.
        ways: the other ways to log in that are open to the user, such as ``Grid Login``.
        remedy: what an administrator does, as a clause without its subject.
    """

    reason: str
    ways: tuple[str, ...]
    remedy: str


def closed_door(user: User, now: datetime) -> ClosedDoor | None:
    """Return why *user* cannot log in by password or passkey at *now*; None: it can, as far as it has one."""
    if doors.has_local_door(user, now):
        return None
    name = user.get_username()
    if not user.is_active:
        return ClosedDoor("the account is disabled", (), f"enables it: manage.py account enable {name}")
    listed, remedy = settings.GRIDCAST_LOCAL_LOGIN.names, _opening(user)
    if listed is None:
        reason = _no_own_role(user, now)
    elif doors.lacks_only_a_role(user):
        reason = "GRIDCAST_LOCAL_LOGIN names the account, and no role is granted to it here"
        remedy = f"grants a role here: manage.py access grant {name} ROLE"
    elif listed:
        reason = "GRIDCAST_LOCAL_LOGIN does not name the account"
        remedy = _adding(user, remedy)
    else:
        reason = "GRIDCAST_LOCAL_LOGIN=nobody closes the local login of all accounts"
    return ClosedDoor(reason, other_ways(user, now), remedy)


def other_ways(user: User, now: datetime) -> tuple[str, ...]:
    """Return the ways but password and passkey by which *user* can log in at *now*.

    A login at the provider ends the suspension of an identity, whatever was its reason, if it names a group
    with a role.
    """
    if not user.is_active:
        return ()
    provider, ways, current = settings.GRIDCAST_IDENTITY_PROVIDER, [], doors.current_identities(user)
    if provider is not None and current:
        are_suspended = all(identity.suspension(now) for identity in current)
        ways.append(f"{provider.name}{' (if it names a group with a role)' if are_suspended else ''}")
    if doors.may_be_named_by_proxy(user) and is_admitted(user, None):
        ways.append("the proxy in front of gridcast")
    return tuple(ways)


def ways_in(user: User, now: datetime) -> tuple[str, ...]:
    """Return all ways by which *user* can log in at *now*."""
    if not doors.has_local_door(user, now):
        return other_ways(user, now)
    keys = {"the password": user.has_usable_password(), "a passkey": doors.has_passwordless_passkey(user)}
    return (*(key for key, is_there in keys.items() if is_there), *other_ways(user, now))


def what_opens(user: User, now: datetime) -> str:
    """Return in words what logs *user* in at *now* when it has no second factor; else why nothing does.

    A passkey, also one that logs in without the password, is a second factor: there is none then.
    """
    closed = closed_door(user, now)
    ways = other_ways(user, now)
    if closed is None and user.has_usable_password():
        ways = ("the password", *ways)
    if ways:
        return f"{' or '.join(ways)} alone opens the account"
    why = closed.reason if closed is not None else "it has no password"
    return f"nothing opens the account now, because {why}"


def locked_because(user: User, now: datetime) -> str:
    """Return why no login that is open to *user* at *now* opens the account; empty: one does."""
    if doors.identities_of_logins(user, now):
        return ""
    closed, ways = closed_door(user, now), other_ways(user, now)
    why = "it has neither a password nor a passkey that logs in" if closed is None else closed.reason
    return f"{why}; only {' or '.join(ways)} opens it" if ways else why


def opened_until(user: User, now: datetime) -> datetime | None:
    """Return until when a command has opened the local door of *user*; None: it has not."""
    opening = DoorOpening.objects.open_at(now).filter(user_id=user.pk)
    return opening.values_list("until", flat=True).first()


def _adding(user: User, opening: str) -> str:
    """Return how an administrator opens the door of *user*, whom ``GRIDCAST_LOCAL_LOGIN`` does not name.

    The variable alone opens it only where a role is granted here; *opening* is what works without it.
    """
    name = user.get_username()
    if is_admitted(user, None):
        return f"adds {name} to GRIDCAST_LOCAL_LOGIN, or {opening}"
    if not is_admitted(user, roles.usual_identity(user)):
        return opening
    grants = f"grants a role here: manage.py access grant {name} ROLE"
    return f"{opening}, or {grants}, and adds {name} to GRIDCAST_LOCAL_LOGIN"


def _opening(user: User) -> str:
    """Return how an administrator opens the door; a user without any role is granted one first."""
    name = user.get_username()
    opens = f"opens the account for a while: manage.py account open {name}"
    if is_admitted(user, roles.usual_identity(user)):
        return opens
    grants = f"grants a role here: manage.py access grant {name} ROLE"
    return grants if settings.GRIDCAST_LOCAL_LOGIN.names is None else f"{grants}, and {opens}"


def _no_own_role(user: User, now: datetime) -> str:
    """Return which identity brings the roles of *user*, to whom none is granted here."""
    in_force = user.identities.in_force(now).order_by("-verified_at")
    identity = in_force.first() or user.identities.order_by("-verified_at").first()
    if identity is None:  # the last one was disconnected at this moment
        return "its roles have just changed"
    return source_of_roles(identity, now)


def source_of_roles(identity: Identity, now: datetime) -> str:
    """Return in words whence the roles of *identity* come, and why they do not count, if so."""
    provider = settings.GRIDCAST_IDENTITY_PROVIDER
    if provider is None:
        source = f"{identity.issuer or 'an identity provider'}, and no identity provider is configured now"
    elif not doors.is_current(identity):
        source = f"{identity.issuer}, but the configured identity provider is {provider.url}"
    else:
        source = str(provider.name)
    why = identity.suspension(now)
    return f"its roles come from {source}" + (f"; they are suspended: {why}" if why else "")
