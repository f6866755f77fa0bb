"""The authors of what acts later on their behalf, and the rights that they have now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import models

from monitor.core.db import binary
from monitor.models.identity import Identity
from monitor.models.role import UserRole, acting, identity_of

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

Acting = tuple[int, int | None]  # the keys of a user and of the identity by which it acts

# ``sees_all``, ``has_perm``, ``visible_suites`` and the own sites of a site admin, for many users at once.
_RIGHTS = """
SELECT author.id, asked.identity, role.is_admitted, author.is_superuser OR role.sees_all,
    CASE WHEN author.is_superuser OR role.is_administrator THEN %(permissions)b ELSE array(
        SELECT permission.codename::text FROM auth_permission AS permission
        JOIN django_content_type AS type ON type.id = permission.content_type_id
        WHERE type.app_label = 'monitor' AND permission.codename = ANY (%(permissions)b)
        AND permission.id IN (
            SELECT permission_id FROM auth_user_user_permissions WHERE user_id = author.id
            UNION SELECT permission_id FROM auth_group_permissions WHERE group_id = ANY (role.groups)
        )
    ) END,
    array(SELECT site_id FROM monitor_own_sites(author.id, asked.identity)),
    CASE WHEN author.is_superuser OR role.sees_all THEN '{}' ELSE array(
        SELECT DISTINCT viewers.suite_id FROM monitor_suite_viewers AS viewers WHERE NOT EXISTS (
            SELECT FROM monitor_suite_viewers AS own
            WHERE own.suite_id = viewers.suite_id AND own.group_id = ANY (role.groups)
        )
    ) END
FROM unnest(%(users)b::integer[], %(identities)b::bigint[]) AS asked (author, identity)
JOIN auth_user AS author ON author.id = asked.author, LATERAL (
    SELECT monitor_is_admitted(author.id, asked.identity) AS is_admitted,
        array_agg(member.group_id) AS groups,
        coalesce(bool_or(name IN (%(operator)b, %(administrator)b)), false) AS sees_all,
        coalesce(bool_or(name = %(administrator)b), false) AS is_administrator
    FROM monitor_groups(author.id, asked.identity) AS member
    JOIN auth_group ON auth_group.id = member.group_id
) AS role
"""


class Authored(models.Model):
    """What acts later with the rights that its *author* has then.

    Attributes:
        author: the user who saved it last; null: an operator's file or command did, or the user was deleted,
            or the identity by which it acted.
        identity: the identity by which the author acted then, whose roles it has beside those granted here.
        author_name: its name when it was saved; empty: there was none, and it may see everything.
        suspended: why the rights of its author do not permit it; empty: it is in force.
    """

    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    identity = models.ForeignKey(
        "monitor.Identity", models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    author_name = models.CharField(max_length=150, blank=True, editable=False, db_default="", default="")
    suspended = models.CharField(max_length=300, blank=True, editable=False, db_default="", default="")

    class Meta:
        abstract = True

    @property
    def acting(self) -> Acting | None:
        """The author and the identity by which it acts, as ``rights_of`` takes them; None: there is none."""
        return None if self.author_id is None else (self.author_id, self.identity_id)

    @property
    def authorship(self) -> str:
        """The name of the author, with the identity by which it acts; empty: it has no author."""
        return f"{self.author_name}, by the identity {self.identity}" if self.identity else self.author_name

    def present_author(self) -> AbstractBaseUser | None:
        """Return the author with its present rights; None: it was deleted, or is not admitted now."""
        return None if self.author is None else acting(self.author, self.identity_id)


def by(author: AbstractBaseUser | AnonymousUser | None) -> dict[str, Any]:
    """Return the columns of ``Authored`` for what *author* saves; None: an operator's file or command.

    Call it in the transaction that saves, before rows of rules or webhooks are locked: the identity by which
    the author acts is not deleted until its end.

    Raises:
        PermissionDenied: the identity is gone since the request began.
    """
    if author is None:
        return {"author_id": None, "identity_id": None, "author_name": "", "suspended": ""}
    if not author.is_authenticated:  # it would have no name, as what an operator's file defines
        raise ValueError("expected a user with an account as the author")
    if not Identity.objects.keep(identity_of(author)):
        raise PermissionDenied("The identity by which you acted was disconnected: log in again.")
    return {
        "author_id": author.pk,
        "identity_id": identity_of(author),
        "author_name": author.get_username(),
        "suspended": "",
    }


@dataclass(frozen=True)
class AuthorRights:
    """What a user may do and see now.

    Attributes:
        permissions: the requested ones that the user has at every site.
        own_sites: the sites of which the user is a site admin.
        hidden_suites: the suites that the user may not see.
    """

    is_admitted: bool
    sees_all: bool
    permissions: frozenset[str]
    own_sites: frozenset[int]
    hidden_suites: frozenset[int]

    def has(self, permission: str) -> bool:
        return self.is_admitted and permission.removeprefix("monitor.") in self.permissions


def rights_of(authors: Iterable[Acting | None], *permissions: str) -> dict[Acting | None, AuthorRights]:
    """Return the present rights of each of *authors* that exists, from one statement."""
    wanted = sorted({each for each in authors if each is not None}, key=lambda each: (each[0], each[1] or 0))
    if not wanted:
        return {}
    parameters = {
        "users": [user for user, _ in wanted],
        "identities": [identity for _, identity in wanted],
        "permissions": [permission.removeprefix("monitor.") for permission in permissions],
        "operator": UserRole.OPERATOR.value,
        "administrator": UserRole.ADMINISTRATOR.value,
    }
    with binary.cursor() as cursor:
        rows = cursor.execute(_RIGHTS.encode(), parameters, binary=True).fetchall()
    return {
        (user, identity): AuthorRights(
            is_admitted, is_admitted and sees_all, frozenset(has), frozenset(sites), frozenset(hidden)
        )
        for user, identity, is_admitted, sees_all, has, sites, hidden in rows
    }
