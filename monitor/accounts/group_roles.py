"""Roles by the groups that an identity provider names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction

ROLES = ("viewer", "scheduler", "site_admin", "operator", "administrator")


def groups_in(claims: Mapping[str, Any], claim: str) -> set[str]:
    """Return the groups that *claim* names; it may be a path into objects, such as ``realm_access.roles``.

    A claim of another form than a text or a list names no groups.
    """
    value: Any = claims.get(claim)
    if value is None:
        value = claims
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return {group for group in values if isinstance(group, str)}


def roles_of_groups(groups: Iterable[str], mapping: Sequence[tuple[str, str]]) -> set[str]:
    """Return the roles that *mapping*, pairs of a role and a group, gives to members of *groups*."""
    members = set(groups)
    return {role for role, group in mapping if group in members}


@transaction.atomic
def set_roles(user: User, roles: Iterable[str]) -> None:
    """Give *user* exactly *roles*; groups that are no roles stay."""
    others = list(user.groups.exclude(name__in=ROLES))
    groups = [Group.objects.get_or_create(name=role)[0] for role in sorted(roles)]
    user.groups.set([*others, *groups])
