"""``manage.py access``: list, grant and revoke roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.roles import RoleError
from monitor.management.named_user import named_user
from monitor.models.role import UserRole

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from datetime import datetime

    from monitor.depot.access.roles import Grant
    from monitor.models import Identity


class Command(BaseCommand):
    help = "List users with their roles, and grant and revoke roles."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="list all users with their roles, identities and state")
        listing.add_argument("user", nargs="?", help="only this user")
        for verb, text in (("grant", "give a user a role"), ("revoke", "take a role from a user")):
            changing = verbs.add_parser(verb, help=text)
            changing.add_argument("user")
            changing.add_argument(
                "role",
                help=f"{', '.join(UserRole.values)}; {UserRole.SITE_ADMIN.value} with its site, as in"
                f" {UserRole.SITE_ADMIN.value}:SITE",
            )
            changing.add_argument("--site", help=f"the site of the role {UserRole.SITE_ADMIN.value}")

    def handle(self, *, verb: str, user: str | None, **options: Any) -> None:
        now = timezone.now()
        if verb == "list":
            holders = User.objects.filter(pk=named_user(user).pk) if user else User.objects.all()
            shown = holders.order_by("username").prefetch_related("groups", "identities")
            for each in shown.prefetch_related("administered_sites__site"):
                self.stdout.write(f"{each}  {_words(each, now)}")
            return
        holder = named_user(user or "")
        try:
            named = _grant(options["role"], options["site"])
            change = roles.grant if verb == "grant" else roles.revoke
            is_changed = change(holder, named)
        except RoleError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{holder}  {_words(holder, now)}" + ("" if is_changed else "  (as before)"))


def _grant(role: str, site: str | None) -> Grant:
    """Return the grant that both options name: ``site_admin:ncsa``, or ``site_admin`` and its site."""
    if site is None:
        return roles.parse_grant(role)
    if ":" in role:
        raise CommandError(f"the site is named twice: by {role!r} and by --site {site}")
    return roles.checked_grant(role, site)


def _words(user: User, now: datetime) -> str:
    """Return the roles of *user*, by grants and by identities, and whether the account is disabled."""
    granted = ", ".join(str(grant) for grant in roles.grants_of(user))
    identities = [_identity(each, now) for each in user.identities.all()]
    if not granted:
        granted = "none granted here" if identities else "none: reads as a viewer"
    return "; ".join([granted, *identities]) + ("" if user.is_active else " (disabled)")


def _identity(identity: Identity, now: datetime) -> str:
    why = identity.suspension(now)
    named = ", ".join(identity.roles) or "no role"
    return f"by the identity {identity.subject}: {named}" + (f" (suspended: {why})" if why else "")
