"""Roles by the groups that an identity provider names."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User

from monitor.access import roles

logger = logging.getLogger(__name__)


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


def give_roles(user: User, names: Iterable[str]) -> None:
    """Give *user* exactly the roles *names*, such as ``site_admin:SITE``; groups that are no roles stay.

    A role at an unknown site is left out. The last administrator keeps the roles. The log has both.
    """
    grants = []
    for name in sorted(names):
        try:
            grants.append(roles.parse_grant(name))
        except roles.InvalidGrant as error:
            logger.warning("role %r of %r left out: %s", name, user.get_username(), error)
    try:
        roles.set_roles(user, grants)
    except roles.LastAdministrator as error:
        logger.warning("roles of %r stay: %s", user.get_username(), error)
