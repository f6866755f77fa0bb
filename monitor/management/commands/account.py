"""``manage.py account ACTION USER``: help for users that cannot log in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from redis import RedisError

from monitor.access.audit_trail import note
from monitor.accounts import attempts, sessions, throttle

if TYPE_CHECKING:
    from argparse import ArgumentParser

ACTIONS = ("unlock", "remove-second-factors", "end-sessions")


class Command(BaseCommand):
    help = "Help a user that cannot log in. manage.py changepassword sets a new password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "action",
            choices=ACTIONS,
            help="unlock: forget failed logins; remove-second-factors: app, passkeys and recovery codes;"
            " end-sessions: log the user out everywhere",
        )
        parser.add_argument("user", help="name of the user")

    def handle(self, *, action: str, user: str, **_: Any) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(f"there is no user {user!r}")
        self.stdout.write(getattr(self, f"_{action.replace('-', '_')}")(owner))

    def _unlock(self, user: User) -> str:
        try:
            forgotten = attempts.unlock(user.get_username())
        except RedisError as error:
            raise CommandError(
                f"cannot forget failed logins of {user}: Valkey is unreachable, and each web process counts"
                f" in its own memory: {error}"
            ) from None
        codes = max(forgotten[throttle.SECOND_FACTOR], forgotten[throttle.SECOND_FACTOR_IN_ALL])
        failures = f"{forgotten[throttle.USER]} failed logins from unknown browsers and {codes} wrong codes"
        note("failed logins", user.get_username(), before=failures)
        return (
            f"{user}: {failures} forgotten. Limits of an address, and of a browser in which the user has"
            " logged in before, end after their 15 minutes."
        )

    def _remove_second_factors(self, user: User) -> str:
        number, _ = Authenticator.objects.filter(user=user).delete()
        note("second factor", user.get_username(), before=f"{number} factors")
        return f"{number} second factors of {user} removed: the password alone opens the account."

    def _end_sessions(self, user: User) -> str:
        return f"{sessions.end_all(user)} sessions of {user} ended."
