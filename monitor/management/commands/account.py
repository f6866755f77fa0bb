"""``manage.py account ACTION USER``: help for users that cannot log in."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from redis import RedisError

from monitor.access import roles
from monitor.access.audit_trail import note
from monitor.accounts import attempts, doors, sessions, throttle
from monitor.models import DoorOpening, Identity
from monitor.models.role import acting

if TYPE_CHECKING:
    from argparse import ArgumentParser

MOST_MINUTES = 7 * 24 * 60


class Command(BaseCommand):
    help = "Help a user that cannot log in. manage.py changepassword sets a new password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for action, words in (
            ("unlock", "forget failed logins"),
            ("remove-second-factors", "remove app, passkeys and recovery codes"),
            ("end-sessions", "log the user out everywhere"),
            ("open", "let the user log in by password or passkey for a while, without the provider"),
        ):
            sub = actions.add_parser(action, help=words, description=words)
            sub.add_argument("user", help="name of the user")
            if action == "open":
                sub.add_argument(
                    "--minutes",
                    type=int,
                    default=60,
                    help=f"until when: 0 (closed again) to {MOST_MINUTES} minutes from now (default: 60)",
                )

        bind = actions.add_parser(
            "bind-issuer",
            help="let the identities of an issuer be those of the configured one, after it has moved",
            description="After a change of GRIDCAST_OIDC_URL, the identities of before belong to the issuer"
            " of before. If the new one names the same users by the same subjects, bind them to it: each is"
            " verified at its next login.",
        )
        bind.add_argument("issuer", help="the issuer of before, exactly; empty if none was configured")

    def handle(self, *, action: str, **options: Any) -> None:
        if action == "bind-issuer":
            self.stdout.write(self._bind(options["issuer"]))
            return
        user: str = options["user"]
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(f"there is no user {user!r}")
        if action == "open":
            self.stdout.write(self._open(owner, options["minutes"]))
        else:
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
        words = "removed, and all sessions ended: the password alone opens the account"
        return f"{number} second factors of {user} {words}."

    def _end_sessions(self, user: User) -> str:
        return f"{sessions.end_all(user)} sessions of {user} ended."

    def _open(self, user: User, minutes: int) -> str:
        """Open the local door; with which roles the user can then log in must be true when it is said."""
        if not 0 <= minutes <= MOST_MINUTES:
            raise CommandError(f"--minutes: expected 0 to {MOST_MINUTES}, got {minutes}")
        if not user.is_active:
            raise CommandError(f"{user} is disabled: enable the account first, on the page Users and roles")
        identity = roles.usual_identity(user)
        if minutes and acting(user, identity) is None:
            why = doors.closed_because(user)
            raise CommandError(
                f"{user} has no role granted here, and none by the provider{f' ({why})' if why else ''}:"
                f" grant one first, such as manage.py access grant {user} viewer"
            )
        until = timezone.now() + timedelta(minutes=minutes)
        DoorOpening.objects.update_or_create(user=user, defaults={"until": until})
        note("local door", user.get_username(), after=f"open until {until:%Y-%m-%d %H:%M} UTC")
        if not minutes:
            return f"{user} logs in again only as GRIDCAST_LOCAL_LOGIN says."
        return (
            f"{user} can log in by password or passkey until {until:%Y-%m-%d %H:%M} UTC{self._advice(user)}."
        )

    def _bind(self, before: str) -> str:
        configured = settings.GRIDCAST_IDENTITY_PROVIDER
        if configured is None:
            raise CommandError("GRIDCAST_OIDC_URL is not set: there is no issuer to bind identities to")
        rows = Identity.objects.filter(issuer=before).exclude(issuer=configured.url)
        subjects = list(rows.values_list("subject", flat=True))
        if not subjects:
            issuers = Identity.objects.order_by().values_list("issuer", flat=True).distinct()
            raise CommandError(
                f"there is no identity of {before!r}; there are: {', '.join(sorted(issuers)) or 'none'}"
            )
        if both := Identity.objects.filter(issuer=configured.url, subject__in=subjects).first():
            raise CommandError(
                f"{both.subject!r} is known there as well, as the user {both.user}:"
                " disconnect one of the two first"
            )
        number = rows.update(issuer=configured.url, is_verified=False)
        note("identities", before, before=before, after=configured.url)
        noun = "identity" if number == 1 else "identities"
        return f"{number} {noun} of {before} bound to {configured.url}, and verified at the next login."

    def _advice(self, user: User) -> str:
        has_passkey = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).exists()
        if user.has_usable_password() or has_passkey:
            return ""
        return f", and has neither: set a password by manage.py changepassword {user}"
