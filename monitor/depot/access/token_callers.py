"""The callers that may have the text of a token: with at least the rights that it has, now and later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.models import ApiToken, Identity
from monitor.models.role import identity_of, is_administrator, roles_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class TokenError(Exception):
    """The token is not issued or changed; the message says why."""


class ExceedsRights(TokenError):
    pass


def may_have_text(caller: User, holder: int, identity: int | None) -> bool:
    """Return whether *caller* may have the text of a token of the user *holder* that acts by *identity*.

    A token has what its identity brings now and later, so its text is only for callers that act by the same
    identity, and for administrators. A token without one has what is granted here, as its user always has.
    """
    return is_administrator(caller) or (caller.pk == holder and identity in {None, identity_of(caller)})


def check_caller(holder: User, caller: User) -> None:
    """Raise ExceedsRights unless *caller* may have the text of a token of *holder*, as this acts now."""
    identity = identity_of(holder)
    if may_have_text(caller, holder.pk, identity):
        return
    if caller.pk != holder.pk:
        raise ExceedsRights("only an administrator issues tokens for other users, or rotates theirs")
    other = Identity.objects.get(pk=identity or 0)
    raise ExceedsRights(
        f"the token acts by the identity {other}, and you do not act by it now:"
        " log in with that identity to rotate the token, or revoke it"
    )


def check_in_force(holder: User) -> None:
    """Raise ExceedsRights if a token of *holder*, as this acts, would not be valid now."""
    if roles_of(holder):
        return
    if not holder.is_active:
        why = "the account is disabled: enable it first"
    elif identity_of(holder) is not None:
        why = "its identity is suspended until a login there names a mapped group again"
    else:
        why = "no role is granted here, and no identity of the account is in force: grant a role first"
    raise ExceedsRights(f"a token of {holder} would not be valid now: {why}")


def keep_identity(identity: int | None) -> None:
    """Let *identity*, by which a token acts, not be deleted until the transaction ends; call it first.

    Raises:
        ExceedsRights: it is gone already.
    """
    if not Identity.objects.keep(identity):
        raise ExceedsRights("the identity by which the token would act was disconnected")


def check_within(token: ApiToken, by: ApiToken) -> None:
    """Raise ExceedsRights unless the token *by* may see, rotate and revoke *token*."""
    if token.pk != by.pk and not ApiToken.objects.within(by).filter(pk=token.pk).exists():
        raise ExceedsRights(
            f"the token that asks has fewer rights than the token {token.pk}:"
            " its user, identity, scopes, reporter and site have to include those"
        )
