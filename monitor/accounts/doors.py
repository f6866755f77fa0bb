"""The local door of an account, a login by password or passkey; and by what a session of it then acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from django.conf import settings

from monitor.access import roles
from monitor.models import DoorOpening, Identity
from monitor.models.passkey import logs_in_without_password
from monitor.models.role import is_admitted

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User


def has_local_door(user: User, now: datetime) -> bool:
    """Return whether *user* may log in at *now* by password or passkey, as ``GRIDCAST_LOCAL_LOGIN`` says.

    An account whose roles come from the identity provider alone may not, also if the variable names it: its
    password and its passkeys would outlive its dismissal there. They are inactive, not removed.
    """
    is_permitted = settings.GRIDCAST_LOCAL_LOGIN.permits(user.get_username()) or _is_opened(user, now)
    return is_permitted and is_admitted(user, identity_of_local_login(user, now))


def lets_in(user: User, account: int | None, now: datetime) -> bool:
    """Return whether *user* may come in at *now* by *account*, of the provider; None: by the local door."""
    if account is None:
        return has_local_door(user, now)
    identity = user.identities.filter(account=account).values_list("pk", flat=True).first()
    return identity is not None and is_admitted(user, identity)


def identity_of_local_login(user: User, now: datetime) -> int | None:
    """Return the identity by which a session acts that *user* begins with password or passkey.

    None: it acts by what was granted here. An account without a role of its own, whose door was opened by a
    command, has the roles that the provider named last.
    """
    return roles.usual_identity(user) if _is_opened(user, now) else None


def lacks_only_a_role(user: User) -> bool:
    """Return whether ``GRIDCAST_LOCAL_LOGIN`` names *user*, to whom only no role is granted here."""
    names = settings.GRIDCAST_LOCAL_LOGIN.names or frozenset()
    return user.is_active and user.get_username() in names and not is_admitted(user, None)


def closed_because(user: User) -> str:
    """Return why the provider's side of *user* is suspended; empty: no identity of it is, or it has none."""
    suspended = Identity.objects.filter(user_id=user.pk).exclude(suspended="").order_by("-suspended_at")
    return suspended.values_list("suspended", flat=True).first() or ""


def has_door_without(identity: Identity) -> bool:
    """Return whether the user of *identity* could still log in if that were disconnected.

    Another identity is a door, also while it is suspended; so is a proxy that authenticates.
    """
    user: User = identity.user
    others = user.identities.exclude(pk=identity.pk)
    if others.exists() or settings.GRIDCAST_REMOTE_USER is not None:
        return True
    # Without an identity, an account has a role of its own: at least it reads as a viewer.
    return has_key(user) and settings.GRIDCAST_LOCAL_LOGIN.permits(user.get_username())


def has_key(user: User) -> bool:
    """Return whether *user* has a password, or a passkey that logs in without one."""
    return user.has_usable_password() or has_passwordless_passkey(user)


def has_passwordless_passkey(user: User) -> bool:
    """Return whether *user* has a passkey that logs in without the password."""
    passkeys = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN)
    return any(logs_in_without_password(passkey) for passkey in passkeys)


def _is_opened(user: User, now: datetime) -> bool:
    return DoorOpening.objects.filter(user_id=user.pk, until__gt=now).exists()
