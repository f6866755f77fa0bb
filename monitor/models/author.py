"""The authors of what acts later on their behalf, and the rights that they have now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

from monitor.db import binary
from monitor.models.role import UserRole

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

# ``sees_all``, ``has_perm``, ``visible_suites`` and the own sites of a site admin, for many users at once.
_RIGHTS = """
SELECT author.id, author.is_active, author.is_superuser OR role.is_operator,
    CASE WHEN author.is_superuser THEN %(permissions)b ELSE array(
        SELECT permission.codename::text FROM auth_permission AS permission
        JOIN django_content_type AS type ON type.id = permission.content_type_id
        WHERE type.app_label = 'monitor' AND permission.codename = ANY (%(permissions)b)
        AND permission.id IN (
            SELECT permission_id FROM auth_user_user_permissions WHERE user_id = author.id
            UNION SELECT permission_id FROM auth_group_permissions JOIN auth_user_groups USING (group_id)
            WHERE user_id = author.id
        )
    ) END,
    CASE WHEN role.is_site_admin THEN array(
        SELECT site_id FROM monitor_siteadministrator WHERE user_id = author.id
    ) ELSE '{}' END,
    CASE WHEN author.is_superuser OR role.is_operator THEN '{}' ELSE array(
        SELECT DISTINCT viewers.suite_id FROM monitor_suite_viewers AS viewers WHERE NOT EXISTS (
            SELECT FROM monitor_suite_viewers AS own JOIN auth_user_groups AS member USING (group_id)
            WHERE own.suite_id = viewers.suite_id AND member.user_id = author.id
        )
    ) END
FROM auth_user AS author, LATERAL (
    SELECT coalesce(bool_or(name = %(operator)b), false) AS is_operator,
        coalesce(bool_or(name = %(site_admin)b), false) AS is_site_admin
    FROM auth_user_groups AS member JOIN auth_group ON auth_group.id = member.group_id
    WHERE member.user_id = author.id
) AS role
WHERE author.id = ANY (%(users)b)
"""


class Authored(models.Model):
    """What acts later with the rights that its *author* has then.

    Attributes:
        author: the user who saved it last; null: an operator's file or command did, or the user was deleted.
        author_name: its name when it was saved; empty: there was none, and it may see everything.
        suspended: why the rights of its author do not permit it; empty: it is in force.
    """

    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    author_name = models.CharField(max_length=150, blank=True, editable=False, db_default="", default="")
    suspended = models.CharField(max_length=300, blank=True, editable=False, db_default="", default="")

    class Meta:
        abstract = True


def by(author: AbstractBaseUser | AnonymousUser | None) -> dict[str, Any]:
    """Return the columns of ``Authored`` for what *author* saves; None: an operator's file or command."""
    if author is None:
        return {"author_id": None, "author_name": "", "suspended": ""}
    if not author.is_authenticated:  # it would have no name, as what an operator's file defines
        raise ValueError("expected a user with an account as the author")
    return {"author_id": author.pk, "author_name": author.get_username(), "suspended": ""}


@dataclass(frozen=True)
class AuthorRights:
    """What a user may do and see now.

    Attributes:
        permissions: the requested ones that the user has at every site.
        own_sites: the sites of which the user is a site admin.
        hidden_suites: the suites that the user may not see.
    """

    is_active: bool
    sees_all: bool
    permissions: frozenset[str]
    own_sites: frozenset[int]
    hidden_suites: frozenset[int]

    def has(self, permission: str) -> bool:
        return self.is_active and permission.removeprefix("monitor.") in self.permissions


def rights_of(users: Iterable[int], *permissions: str) -> dict[int, AuthorRights]:
    """Return the present rights of each of *users* that exists, from one statement."""
    wanted = sorted(set(users))
    if not wanted:
        return {}
    parameters = {
        "users": wanted,
        "permissions": [permission.removeprefix("monitor.") for permission in permissions],
        "operator": UserRole.OPERATOR.value,
        "site_admin": UserRole.SITE_ADMIN.value,
    }
    with binary.cursor() as cursor:
        rows = cursor.execute(_RIGHTS.encode(), parameters, binary=True).fetchall()
    return {
        user: AuthorRights(
            is_active, is_active and sees_all, frozenset(has), frozenset(sites), frozenset(hidden)
        )
        for user, is_active, sees_all, has, sites, hidden in rows
    }
