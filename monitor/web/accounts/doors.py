"""The local door of an account, a login by password or passkey; and by what a session of it then acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from django.conf import settings

from monitor.depot.access import roles
from monitor.models import DoorOpening, Identity
from monitor.models.identity import names_of
from monitor.models.passkey import logs_in_without_password
from monitor.models.role import is_admitted
from monitor.web.accounts.users import NAME

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, User


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


def identities_of_logins(user: User, now: datetime) -> set[int | None]:
    """Return by what *user* would act after a login at *now*, for each door that is open to it.

    None is what was granted here, any other the key of an identity.
    """
    if not user.is_active:
        return set()
    acting = {each.pk for each in current_identities(user) if not each.suspension(now)}
    by_key = {identity_of_local_login(user, now)} if has_local_door(user, now) and has_key(user) else set()
    by_proxy = {None} if may_be_named_by_proxy(user) and is_admitted(user, None) else set()
    return acting | by_key | by_proxy


def lacks_only_a_role(user: User) -> bool:
    """Return whether ``GRIDCAST_LOCAL_LOGIN`` names *user*, to whom only no role is granted here."""
    names = settings.GRIDCAST_LOCAL_LOGIN.names or frozenset()
    return user.is_active and user.get_username() in names and not is_admitted(user, None)


def closed_because(user: User) -> str:
    """Return why the provider's side of *user* is suspended; empty: no identity of it is, or it has none."""
    suspended = Identity.objects.filter(user_id=user.pk).exclude(suspended="").order_by("-suspended_at")
    return suspended.values_list("suspended", flat=True).first() or ""


def is_current(identity: Identity) -> bool:
    """Return whether *identity* is of the configured provider; a login binds one without an issuer."""
    provider = settings.GRIDCAST_IDENTITY_PROVIDER
    return provider is not None and identity.issuer in {"", *names_of(provider.url)}


def current_identities(user: AbstractBaseUser) -> list[Identity]:
    """Return the identities of *user* by which a login may end now; those of former issuers are no doors."""
    return [identity for identity in Identity.objects.filter(user_id=user.pk) if is_current(identity)]


def may_be_named_by_proxy(user: User) -> bool:
    """Return whether a proxy that authenticates could name *user*: its header has fewer letters."""
    return settings.GRIDCAST_REMOTE_USER is not None and bool(NAME.fullmatch(user.get_username()))


def no_door_without(identity: Identity) -> str:
    """Return why the user of *identity* could not log in if that were disconnected; empty: it could.

    Another identity of the configured provider is a door, also while it is suspended. What a command has
    opened for a while is none. A disabled account is judged as it would be when it is enabled.
    """
    user: User = identity.user
    others = list(user.identities.exclude(pk=identity.pk))
    if any(map(is_current, others)):
        return ""
    if others and not roles.grants_of(user):
        issuers = ", ".join(sorted({other.issuer or "an identity provider" for other in others}))
        return (
            f"no role is granted to the account here, and its other identities are of {issuers}, where no"
            " login leads now. Disconnect those first, or let an administrator grant a role here"
        )
    # Without an identity, an account has a role of its own: at least it reads as a viewer.
    if may_be_named_by_proxy(user):
        return ""
    if not settings.GRIDCAST_LOCAL_LOGIN.permits(user.get_username()):
        return "GRIDCAST_LOCAL_LOGIN does not admit its password and passkeys, and there is no other identity"
    if not has_key(user):
        return "it has neither a password nor a passkey that logs in. Set a password first"
    return ""


def has_key(user: User) -> bool:
    """Return whether *user* has a password, or a passkey that logs in without one."""
    return user.has_usable_password() or has_passwordless_passkey(user)


def has_passwordless_passkey(user: User) -> bool:
    """Return whether *user* has a passkey that logs in without the password."""
    passkeys = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN)
    return any(logs_in_without_password(passkey) for passkey in passkeys)


def _is_opened(user: User, now: datetime) -> bool:
    return DoorOpening.objects.open_at(now).filter(user_id=user.pk).exists()
