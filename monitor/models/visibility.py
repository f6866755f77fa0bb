"""The rule that exempts users from the restriction of suites to viewers, and a condition for such rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Subquery
from django.db.models.lookups import IsNull

from monitor.models.role import UserRole, roles_of

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet


def sees_all(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may see every suite and its content, as operators and administrators may.

    This is the only such rule; ``ApiToken.objects.senders`` repeats it in SQL.
    """
    return bool(roles_of(user) & {UserRole.OPERATOR, UserRole.ADMINISTRATOR})


def has_row(rows: QuerySet[Any]) -> IsNull:
    """Return the condition that there is one of *rows*, which refer to an ``OuterRef``.

    PostgreSQL turns ``Exists`` into a join, which reads all *rows*, for example all bindings to find the
    sites of some of them. This condition is evaluated for each outer row, and ends at the first of *rows*.
    """
    return IsNull(Subquery(rows.order_by().values("pk")[:1]), False)
