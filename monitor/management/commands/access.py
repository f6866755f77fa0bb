"""``manage.py access``: list, grant and revoke roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from monitor.access import roles
from monitor.access.roles import RoleError
from monitor.models.role import UserRole

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "List, grant and revoke the roles of users."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="list users with their roles")
        listing.add_argument("user", nargs="?", help="only this user")
        for verb, text in (("grant", "give a user a role"), ("revoke", "take a role from a user")):
            changing = verbs.add_parser(verb, help=text)
            changing.add_argument("user")
            changing.add_argument("role", choices=UserRole.values)
            changing.add_argument("--site", help=f"the site of the role {UserRole.SITE_ADMIN.value}")

    def handle(self, *, verb: str, user: str | None, **options: Any) -> None:
        if verb == "list":
            users = User.objects.order_by("username") if user is None else [_user(user)]
            for each in users:
                self.stdout.write(f"{each}  {_words(each)}")
            return
        holder = _user(user or "")
        try:
            named = roles.checked_grant(options["role"], options["site"])
            change = roles.grant if verb == "grant" else roles.revoke
            is_changed = change(holder, named)
        except RoleError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{holder}  {_words(holder)}" + ("" if is_changed else "  (as before)"))


def _words(user: User) -> str:
    words = ", ".join(str(grant) for grant in roles.grants_of(user)) or "none: reads as a viewer"
    return words if user.is_active else f"{words} (inactive)"


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(
            f"there is no user {name!r}; create one by manage.py account create or on /access/"
        )
    return user
