"""Accounts: created, changed, disabled and deleted, by the pages below ``/access/`` and by commands.

Each change is noted for the audit record, without secrets. Errors, all permanent::

    AccountError
    |-- InvalidName        the name looks like another one, or has characters that names do not have
    |   `-- NameTaken      there is such an account
    |-- InvalidPassword    too short, too common, or too similar to the name
    `-- InvalidProfile     the e-mail address is none, or a name is too long
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from allauth.mfa.base.internal.flows import delete_dangling_recovery_codes
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import models, transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.access import roles
from monitor.depot.access.audit_trail import note
from monitor.models import Identity
from monitor.web.accounts import codes, sessions
from monitor.web.accounts.look_alikes import appearances

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.contrib.auth.models import Group, Permission

    from monitor.depot.access.roles import Grant

# ASCII: letters of other scripts look like these. A name in a proxy's header has the same characters.
MOST_NAME_CHARACTERS = 150
NAME = re.compile(r"[a-zA-Z0-9_.@+-]{1,150}")
_FOREIGN_NAME = re.compile(r"[\w.@+-]+")  # as Django's forms accept them
# What the models of others call these.
KINDS = {
    "admin.logentry": ("entry in the log of the admin pages", "entries in the log of the admin pages"),
    "mfa.authenticator": ("second factor", "second factors"),
    "monitor.apitoken": ("API token", "API tokens"),
    "monitor.outcome": ("outcome of a job", "outcomes of jobs"),
    "monitor.siteadministrator": ("own site", "own sites"),
    "socialaccount.socialaccount": ("account of the identity provider", "accounts of the identity provider"),
    "usersessions.usersession": ("session", "sessions"),
}
PROFILE = ("first_name", "last_name", "email")


class AccountError(Exception):
    """The account is not changed; the message says why."""


class InvalidName(AccountError):
    pass


class NameTaken(InvalidName):
    pass


class InvalidPassword(AccountError):
    pass


class InvalidProfile(AccountError):
    pass


def lock_names() -> None:
    """Let no other transaction create an account or a group until this one ends.

    The database takes names that differ in case alone for different ones.
    """
    lock_until_commit(AdvisoryLock.ACCOUNT_NAMES)


def check_name(name: str) -> None:
    """Raise InvalidName unless *name* can be that of a new account.

    Names that look alike are refused: they differ in upper and lower case alone, or have letters of other
    scripts. Accounts of before keep theirs. Of two ASCII names that look alike, such as ``user1`` and
    ``userl``, the administrator sees both, and may need both.
    """
    if not NAME.fullmatch(name):
        raise InvalidName(f"user name: expected 1 to 150 ASCII letters, digits and @.+-_, got {name[:150]!r}")
    _check_free(name, reads_ascii=True)


def is_foreign_name(text: str) -> bool:
    """Return whether *text* has only characters of names, of any script."""
    return len(text) <= MOST_NAME_CHARACTERS and _FOREIGN_NAME.fullmatch(text) is not None


def check_foreign_name(name: str) -> None:
    """Raise InvalidName unless *name*, which an identity provider gave, can be that of a new account.

    Its letters are of one script, and do not all look like Latin ones: it must not look like another name
    (Unicode Technical Standard 39, whole-script confusables).
    """
    if not is_foreign_name(name):
        raise InvalidName(f"user name: expected 1 to 150 letters, digits and @.+-_, got {name[:150]!r}")
    scripts = {unicodedata.name(letter, "?").partition(" ")[0] for letter in name if letter.isalpha()}
    if len(scripts) > 1:
        found = ", ".join(sorted(scripts))[:100] or "none"
        raise InvalidName(f"user name: expected letters of one script, got {name[:150]!r} ({found})")
    if _looks_latin(name):
        raise InvalidName(f"user name: all letters of {name!r} ({', '.join(scripts)}) look like Latin ones")
    _check_free(name)


def _check_free(name: str, *, reads_ascii: bool = False) -> None:
    """Raise InvalidName if an account has *name*, or one that looks like it."""
    if (taken := find_alike(name, reads_ascii=reads_ascii)) is not None:
        raise NameTaken(f"user name: there is an account {taken.get_username()!r} already")


def find_alike(name: str, *, reads_ascii: bool = False) -> User | None:
    """Return a user called *name*, else one whose name looks like it.

    *reads_ascii*: ASCII names look alike only if they differ by case alone.
    """
    same = User.objects.filter(username__iexact=name)  # as django-allauth compares, too
    if (user := same.filter(username=name).first() or same.first()) is not None:
        return user
    own = appearances(name)
    for other in User.objects.order_by().values_list("username", flat=True):
        compared = 1 if reads_ascii and name.isascii() and other.isascii() else len(own)
        pairs = zip(own[:compared], appearances(other)[:compared], strict=True)
        if any(mine == theirs for mine, theirs in pairs):
            return User.objects.filter(username=other).first()
    return None


def _looks_latin(name: str) -> bool:
    """Return whether *name* has letters, none of them Latin, and for each one that looks like it."""
    from confusable_homoglyphs import confusables  # noqa: PLC0415  # slow to import, and seldom needed

    letters = {letter for letter in unicodedata.normalize("NFKC", name) if letter.isalpha()}
    if not letters or any(letter.isascii() for letter in letters):
        return False
    found = confusables.is_confusable("".join(letters), greedy=True, preferred_aliases=["LATIN"])
    latin = {each["character"] for each in found or () if any(h["c"].isascii() for h in each["homoglyphs"])}
    return latin == letters


@transaction.atomic
def create(
    name: str, password: str | None, grants: Iterable[Grant] = (), profile: Mapping[str, str] | None = None
) -> User:
    """Create an account; without a *password*, its user logs in only by a proxy that authenticates.

    Raises:
        AccountError: a value is not accepted.
    """
    lock_names()
    check_name(name)
    user = User(username=name, **(profile or {}))
    _check_profile(user)
    if password is not None:
        check_password(password, user)
    user.set_password(password)
    user.save()
    shown = {field: value for field, value in _profile(user).items() if value}
    note("account", name, after={**shown, "password": "none" if password is None else "set"})
    for given in grants:
        roles.grant(user, given)
    return user


def check_password(password: str, user: User) -> None:
    """Raise InvalidPassword unless *user* may have *password*; the message has all that is wrong with it."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidPassword(" ".join(error.messages)) from None


@transaction.atomic
def set_password(user: User, password: str) -> int:
    """Set the password of *user*, and end its sessions; return their number.

    Raises:
        InvalidPassword: it is not accepted.
    """
    check_password(password, user)
    had_password = user.has_usable_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    note("password", user.get_username(), before="set" if had_password else "none", after="set anew")
    return sessions.end_all(user)


@transaction.atomic
def set_profile(user: User, values: Mapping[str, str]) -> None:
    """Set first name, last name and e-mail address of *user* to *values*.

    Raises:
        InvalidProfile: a value is not accepted.
    """
    before = _profile(User.objects.get(pk=user.pk))
    for field in PROFILE:
        setattr(user, field, values[field])
    _check_profile(user)
    user.save(update_fields=PROFILE)
    after = _profile(user)
    changed = [field for field in PROFILE if before[field] != after[field]]
    if changed:
        note(
            "account",
            user.get_username(),
            before={field: before[field] for field in changed},
            after={field: after[field] for field in changed},
        )


@transaction.atomic
def disable(user: User) -> int:
    """Let *user* log in nowhere, and its tokens not be valid; end its sessions, and return their number.

    Roles, tokens and factors stay stored. Without an effect on a disabled account.

    Raises:
        LastAdministrator: it is the last active administrator.
    """
    if not user.is_active:
        return 0
    with roles.keeping_an_administrator(user):
        User.objects.filter(pk=user.pk).update(is_active=False)
    user.is_active = False
    note("account", user.get_username(), before="active", after="disabled")
    return sessions.end_all(user)


def enable(user: User) -> None:
    """Let *user* log in again; roles, tokens that have not expired, and factors are as before."""
    if user.is_active:
        return
    user.is_active = True
    user.save(update_fields=["is_active"])
    note("account", user.get_username(), before="disabled", after="active")


@transaction.atomic
def remove_factor(factor: Authenticator) -> int:
    """Remove a second factor, with the last one the recovery codes; end the sessions of its user.

    Return the number of sessions: one may be of the person that found the lost device.
    """
    user = factor.user
    codes.lock_factors(user)  # before the sessions, as where the user removes it
    number = sessions.end_all(user)
    factor.delete()
    delete_dangling_recovery_codes(user)
    return number


@transaction.atomic
def end_sessions(user: User, session: int | None = None) -> int:
    """End the session of *user* with this id, None: all; return the number of sessions that ended."""
    return sessions.end_all(user) if session is None else int(sessions.end(user, session))


@transaction.atomic
def delete(user: User) -> None:
    """Delete *user*, with all that ``losses`` counts.

    Raises:
        LastAdministrator: it is the last active administrator.
    """
    codes.lock_factors(user)  # the session of a login at this moment is deleted, too
    before = {**_profile(user), "roles": [str(grant) for grant in roles.grants_of(user)]}
    before["deleted with it"] = losses(user)
    Identity.objects.lock_of(user.pk)  # before the sessions, as where an identity is suspended
    sessions.end_all(user)
    with roles.keeping_an_administrator(user):
        User.objects.filter(pk=user.pk).delete()
    note("account", user.get_username(), before=before, after="deleted")


def losses(user: User) -> list[str]:
    """Return in words what is deleted with *user*: how many rows of which kind."""
    found = []
    for relation in User._meta.related_objects:  # noqa: SLF001  # Django's API of models
        if isinstance(relation, models.ManyToOneRel) and relation.on_delete is models.CASCADE:
            kind = relation.related_model._meta  # noqa: SLF001
            number = kind.base_manager.filter(**{relation.field.name: user}).count()
            names = KINDS.get(kind.label_lower, (str(kind.verbose_name), str(kind.verbose_name_plural)))
            found += [f"{number:,} {names[number != 1]}"] if number else []
    return sorted(found)


def permit(holder: User | Group, permission: Permission) -> None:
    """Grant a single *permission* to a user, or to the members of a group."""
    permissions(holder).add(permission)
    note("permission", f"{holder}: {label(permission)}", after="granted")


def forbid(holder: User | Group, permission: Permission) -> None:
    """Revoke a single *permission*; what roles and other groups permit stays."""
    permissions(holder).remove(permission)
    note("permission", f"{holder}: {label(permission)}", before="granted", after="revoked")


def label(permission: Permission) -> str:
    """Return the name by which code and documentation call *permission*."""
    return f"{permission.content_type.app_label}.{permission.codename}"


def permissions(holder: User | Group) -> Any:
    """Return the single permissions of a user, or of a group."""
    return holder.user_permissions if isinstance(holder, User) else holder.permissions


def _profile(user: User) -> dict[str, Any]:
    return {field: getattr(user, field) for field in PROFILE}


def _check_profile(user: User) -> None:
    try:
        user.clean_fields(exclude={field.name for field in User._meta.fields} - set(PROFILE))  # noqa: SLF001
    except ValidationError as error:
        faults = [f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items()]
        raise InvalidProfile("; ".join(faults)) from None
