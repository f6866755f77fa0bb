"""The owners of secrets in environment variables: only they have messages signed with them.

``GRIDCAST_WEBHOOK_AT_<SITE>__<NAME>`` belongs to a site, whose name it has in capitals, with ``_`` for ``-``.
The last two underscores in a row separate the parts, so that a variable is read in one way only. Every other
variable belongs to the operators. They may name those of sites, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db.models import Value
from django.db.models.functions import Replace, Upper

from monitor.models import Site
from monitor.models.site import may_manage_everywhere

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

_OF_SITE = re.compile(r"GRIDCAST_WEBHOOK_AT_([A-Z0-9_]+)__([A-Z0-9]+(?:_[A-Z0-9]+)*)")
_MOST_NAMED = 3  # sites in a message


def site_in_capitals(variable: str) -> str:
    """Return the site of *variable* as its name has it; empty: it belongs to the operators."""
    found = _OF_SITE.fullmatch(variable)
    return found[1] if found else ""


def variable_of(site: str, name: str = "SECRET") -> str:
    """Return the variable *name* of *site*."""
    return f"GRIDCAST_WEBHOOK_AT_{site.upper().replace('-', '_')}__{name}"


def why_foreign(variable: str, user: AbstractBaseUser | AnonymousUser, permission: str) -> str:
    """Return why *user* may not have messages signed with the secret of *variable*; empty: it may.

    *permission* is the one to define what signs, at every site.
    """
    if may_manage_everywhere(user, permission):
        return ""
    own = Site.objects.manageable_by(user, permission)
    capitals = site_in_capitals(variable)
    in_capitals = Upper(Replace("name", Value("-"), Value("_")))
    sites = Site.objects.alias(capitals=in_capitals).filter(capitals=capitals)
    named = set(sites.values_list("pk", flat=True))
    foreign = named - set(own.values_list("pk", flat=True))
    if capitals and named and not foreign:
        return ""
    if foreign != named:
        return f"{variable} may hold the secret of another site with the same capitals: ask an operator"
    names = own.order_by("sort_name").values_list("name", flat=True)[:_MOST_NAMED]
    yours = f"; yours have names such as {', '.join(map(variable_of, names))}" if names else ""
    return f"the secret in {variable} belongs to {'another site' if capitals else 'the operators'}{yours}"
