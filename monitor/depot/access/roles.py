"""Grant and revoke roles. A role is a Django group with permissions; this module alone creates these groups.

A user with the role ``administrator`` is a superuser: the flags ``is_superuser`` and ``is_staff`` follow the
groups of a user, by whatever way the groups change (``follow_groups``).

Errors, all permanent::

    RoleError
    |-- InvalidGrant         no such role or site, or the role and the site do not fit
    `-- LastAdministrator    no other active user could grant roles
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from monitor.depot.access.audit_trail import note
from monitor.models import Identity, Site, SiteAdministrator
from monitor.models.role import STAFF, UserRole, forget_roles, identity_of, is_admitted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from django.db.models import QuerySet

_CONFIGURED = (
    "alertrule",
    "binding",
    "maintenancewindow",
    "reporter",
    "resource",
    "series",
    "site",
    "suite",
)
MOST_NAMED = 20  # sites, in a message
# The triggers of the migration ``administrators_remain``; all name the first one in their refusals.
_CONSTRAINT = "administrators_remain"
_CONSTRAINTS = f"{_CONSTRAINT}, {_CONSTRAINT}_undeleted"
_ACCOUNTS = ("apitoken", "siteadministrator")  # only administrators see those of others
# A superuser needs no permissions. A site admin has none: querysets give the rights at the own sites.
_PERMISSIONS: dict[UserRole, Q] = {
    UserRole.SCHEDULER: Q(codename="add_outcome"),
    UserRole.OPERATOR: Q(
        codename__in=[
            "run_series",
            "manage_reporters",
            "manage_signatures",
            "manage_webhooks",
            "add_rawreport",
            "add_outcome",
            *(f"{action}_{model}" for model in _CONFIGURED for action in ("add", "change", "delete")),
        ]
    )
    | Q(codename__startswith="view_") & ~Q(content_type__model__in=_ACCOUNTS),
}


class RoleError(Exception):
    """The role is neither granted nor revoked; the message says why."""


class InvalidGrant(RoleError):
    pass


class LastAdministrator(RoleError):
    pass


@dataclass(frozen=True, order=True)
class Grant:
    """A role; for a site admin, at the site of this name."""

    role: UserRole
    site: str | None = None

    def __str__(self) -> str:
        return self.role.value if self.site is None else f"{self.role.value}:{self.site}"


def parse_grant(text: str) -> Grant:
    """Return the grant that *text* names: a role, or ``site_admin:SITE``.

    Raises:
        InvalidGrant: there is no such role or site.
    """
    role, colon, site = text.partition(":")
    return checked_grant(role, site if colon else None)


def checked_grant(role: str, site: str | None = None) -> Grant:
    """Return the grant of *role*, at *site* if the role needs one.

    Raises:
        InvalidGrant: there is no such role or site.
    """
    if role not in UserRole.values:
        raise InvalidGrant(f"expected one of the roles {', '.join(UserRole.values)}, got {role!r}")
    if (role == UserRole.SITE_ADMIN) != (site is not None):
        raise InvalidGrant(
            f"the role {role} is granted at a site: name the site (by command: {role}:SITE)"
            if role == UserRole.SITE_ADMIN
            else f"the role {role} is not granted at a site, got {site!r}"
        )
    if site is not None and not Site.objects.filter(name=site).exists():
        names = list(Site.objects.order_by("name").values_list("name", flat=True)[: MOST_NAMED + 1])
        shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        raise InvalidGrant(f"there is no site {site!r}; there are: {shown or 'none'}")
    return Grant(UserRole(role), site)


def ensure_roles(**_: Any) -> None:
    """Create the group of each role, with exactly its permissions; also a receiver of ``post_migrate``."""
    create_permissions(apps.get_app_config("monitor"), verbosity=0)  # may run before the receiver of Django
    for role in UserRole:
        role_group(role)


def role_group(role: UserRole) -> Group:
    """Return the group of *role*, with exactly its permissions; create what is missing."""
    group, _ = Group.objects.get_or_create(name=role.value)
    condition = _PERMISSIONS.get(role)
    permissions = Permission.objects.none()
    if condition is not None:
        permissions = Permission.objects.filter(condition, content_type__app_label="monitor")
    group.permissions.set(permissions)
    return group


@transaction.atomic
def grant(user: User, given: Grant) -> bool:
    """Grant *given* to *user*; return False if the user has it already."""
    had = given in grants_of(user)
    if given.site is not None and not user.groups.filter(name=given.role.value).exists():
        user.administered_sites.all().delete()  # of the time before the role was taken away
    user.groups.add(role_group(given.role))
    if given.site is not None:
        SiteAdministrator.objects.get_or_create(user=user, site=Site.objects.get(name=given.site))
    forget_roles(user)
    if not had:
        note("role", f"{user}: {given}", after="granted")
    return not had


@transaction.atomic
def revoke(user: User, taken: Grant) -> bool:
    """Take *taken* from *user*; return False if the user does not have it.

    A site admin without a site has no role any more.

    Raises:
        LastAdministrator: *user* is the last active administrator.
    """
    if taken not in grants_of(user):
        return False
    try:
        with keeping_an_administrator(user):
            if taken.role == UserRole.ADMINISTRATOR:
                _lower_flags(user.pk, [taken.role])  # also of a superuser without the group
            if taken.site is not None:
                SiteAdministrator.objects.filter(user=user, site__name=taken.site).delete()
            if taken.site is None or not user.administered_sites.exists():
                user.groups.remove(*Group.objects.filter(name=taken.role.value))
    finally:
        user.refresh_from_db(fields=["is_staff", "is_superuser"])
        forget_roles(user)
    note("role", f"{user}: {taken}", before="granted", after="revoked")
    return True


def grants_of(user: User) -> list[Grant]:
    """Return what *user* has been granted here, sorted; a user without a role has no grant."""
    roles = {UserRole(group.name) for group in user.groups.all() if group.name in UserRole.values}
    roles.discard(UserRole.ADMINISTRATOR)  # the flag decides
    grants = [Grant(role) for role in roles - {UserRole.SITE_ADMIN}]
    if user.is_superuser:
        grants.append(Grant(UserRole.ADMINISTRATOR))
    if UserRole.SITE_ADMIN in roles:
        own = user.administered_sites.all()
        grants += [Grant(UserRole.SITE_ADMIN, administered.site.name) for administered in own]
    return sorted(grants)


def present_grants(user: User) -> list[Grant]:
    """Return what *user* has now: what was granted here, and what the identity by which it acts brought."""
    brought = Identity.objects.in_force(timezone.now()).filter(pk=identity_of(user) or 0)
    names = {name for roles in brought.values_list("roles", flat=True) for name in roles}
    return sorted({*grants_of(user), *(_brought(name) for name in names)})


def _brought(name: str) -> Grant:
    role, _, site = name.partition(":")
    return Grant(UserRole(role), site or None)


def usual_identity(user: User) -> int | None:
    """Return the identity by which *user* acts where none is chosen, as for a token of a command.

    None if the user has a role granted here, or no identity in force: then it acts by what was granted here.
    """
    if is_admitted(user, None):
        return None
    in_force = user.identities.in_force(timezone.now()).order_by("-verified_at")
    return in_force.values_list("pk", flat=True).first()


def follow_groups(instance: User | Group, action: str, pk_set: Collection[int] | None, **_: Any) -> None:
    """Make flags follow the groups; a receiver of ``m2m_changed`` of ``User.groups``.

    Removals are followed before they happen, because a cleared relation no longer says what it contained.
    """
    if action not in {"post_add", "pre_remove", "pre_clear"}:
        return
    if isinstance(instance, Group):  # its members change
        members = instance.user_set.values_list("pk", flat=True) if pk_set is None else pk_set
        changed = {user: {instance.name} for user in members}
    else:
        groups = instance.groups.all() if pk_set is None else Group.objects.filter(pk__in=pk_set)
        changed = {instance.pk: set(groups.values_list("name", flat=True))}
    for user, names in changed.items():
        roles = {UserRole(name) for name in names & set(UserRole.values)}
        if action == "post_add":
            _raise_flags(user, roles)
        else:
            _lower_flags(user, roles)
    if isinstance(instance, User):
        instance.refresh_from_db(fields=["is_staff", "is_superuser"])
        forget_roles(instance)


def _raise_flags(user: int, added: Collection[UserRole]) -> None:
    flags = {"is_staff": bool(STAFF & set(added)), "is_superuser": UserRole.ADMINISTRATOR in added}
    User.objects.filter(pk=user).update(**{flag: True for flag, is_raised in flags.items() if is_raised})


def _lower_flags(user: int, removed: Collection[UserRole]) -> None:
    """Take the flags that only *removed* gave; a superuser without the group stays one."""
    users = User.objects.filter(pk=user)
    if UserRole.ADMINISTRATOR in removed:
        users.update(is_superuser=False)
    left = set(Group.objects.filter(user=user).values_list("name", flat=True)) - set(removed)
    if STAFF & set(removed) and not STAFF & left:
        users.filter(is_superuser=False).update(is_staff=False)


def clear_members(instance: Group, **_: Any) -> None:
    """Make the flags of its members follow the deletion of a group; a receiver of ``pre_delete``."""
    if instance.name in UserRole.values:
        instance.user_set.clear()


def has_administrator() -> bool:
    """Return whether an active user is an administrator, by a grant or an identity in force."""
    return administrators().exists()


def administrators() -> QuerySet[User]:
    """Return the active administrators, by a grant or an identity in force."""
    brought = Identity.objects.in_force(timezone.now()).filter(roles__contains=[UserRole.ADMINISTRATOR])
    is_administrator = Q(is_superuser=True) | Q(pk__in=brought.values("user"))
    return User.objects.filter(is_administrator, is_active=True)


@contextlib.contextmanager
def keeping_an_administrator(user: User) -> Iterator[None]:
    """Refuse what the block changes about *user* if no active administrator would remain.

    The database counts, by grants and identities alike, as at each commit (``administrators_remain``).

    Raises:
        LastAdministrator: nothing of the block is changed.
    """
    try:
        with transaction.atomic():
            yield
            with connection.cursor() as cursor:
                cursor.execute(f"SET CONSTRAINTS {_CONSTRAINTS} IMMEDIATE")
                cursor.execute(f"SET CONSTRAINTS {_CONSTRAINTS} DEFERRED")
    except IntegrityError as error:
        if not takes_last_administrator(error):
            raise
        raise LastAdministrator(
            f"{user} is the last active administrator: grant the role to another user first"
        ) from None


def takes_last_administrator(error: BaseException | None) -> bool:
    """Return whether *error* is the refusal of a change, or of its commit, that takes the last one."""
    cause = error.__cause__ if isinstance(error, IntegrityError) else None
    return getattr(getattr(cause, "diag", None), "constraint_name", None) == _CONSTRAINT
