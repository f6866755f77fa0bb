"""``manage.py token USER``: issue an API token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from monitor.models import ApiToken
from monitor.models.token import READ, SCOPES

if TYPE_CHECKING:
    from argparse import ArgumentParser

NAME_CHARACTERS = 100


class Command(BaseCommand):
    help = "Issue an API token for a user. The token is shown once and not stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user whose permissions the token has")
        parser.add_argument("--name", default="", help="purpose of the token")
        parser.add_argument("--scope", action="append", choices=SCOPES, help="may be repeated; default: read")

    def handle(self, *, user: str, name: str, scope: list[str] | None, **_: Any) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(
                f"there is no user {user!r}; create one with manage.py createsuperuser or in /admin/"
            )
        if len(name) > NAME_CHARACTERS:
            raise CommandError(f"--name: expected at most {NAME_CHARACTERS} characters, got {len(name)}")
        self.stdout.write(
            ApiToken.objects.issue(owner, name or f"token of {user}"[:NAME_CHARACTERS], scope or [READ])
        )
