"""Roles by the groups that an identity provider names."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitor.depot.access import roles

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


def present_roles(names: Iterable[str]) -> set[str]:
    """Return *names*, such as ``site_admin:SITE``, without roles at unknown sites, which the log names."""
    present = set()
    for name in sorted(names):
        try:
            present.add(str(roles.parse_grant(name)))
        except roles.InvalidGrant as error:
            logger.warning("role %r left out: %s", name, error)
    return present
