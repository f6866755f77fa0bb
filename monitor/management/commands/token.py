"""``manage.py token USER``: issue an API token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from monitor.models import ApiToken, Reporter
from monitor.models.token import READ, REPORT, SCOPES

if TYPE_CHECKING:
    from argparse import ArgumentParser

NAME_CHARACTERS = 100


class Command(BaseCommand):
    help = "Issue an API token for a user. The token is shown once and not stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user whose permissions the token has")
        parser.add_argument("--name", default="", help="purpose of the token")
        parser.add_argument("--scope", action="append", choices=SCOPES, help="may be repeated; default: read")
        parser.add_argument("--reporter", help="the reporter whose reports it may send; with --scope report")

    def handle(
        self, *, user: str, name: str, scope: list[str] | None, reporter: str | None, **_: Any
    ) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(
                f"there is no user {user!r}; create one with manage.py createsuperuser or in /admin/"
            )
        if len(name) > NAME_CHARACTERS:
            raise CommandError(f"--name: expected at most {NAME_CHARACTERS} characters, got {len(name)}")
        scopes = scope or [READ]
        if (REPORT in scopes) != (reporter is not None):
            raise CommandError(
                "a token sends the reports of one reporter: --scope report and --reporter need each other"
            )
        bound_to = Reporter.objects.filter(name=reporter).first()
        if bound_to is None and reporter is not None:
            names = ", ".join(Reporter.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"--reporter: there is no reporter {reporter!r}; there are: {names}")
        token_name = name or f"token of {user}"[:NAME_CHARACTERS]
        self.stdout.write(ApiToken.objects.issue(owner, token_name, scopes, bound_to))
