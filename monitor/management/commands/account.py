"""``manage.py account ACTION USER``: create an account, and help a user that cannot log in."""

from __future__ import annotations

import getpass
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from redis import RedisError

from monitor.core.units import counted
from monitor.depot.access import roles
from monitor.depot.access.audit_trail import note
from monitor.depot.access.roles import RoleError
from monitor.management.named_user import named_user
from monitor.models import DoorOpening, Identity
from monitor.models.door_opening import MOST_OPEN
from monitor.models.identity import names_of
from monitor.models.role import is_admitted
from monitor.web.accounts import attempts, door_reasons, doors, throttle, users
from monitor.web.accounts.users import AccountError

if TYPE_CHECKING:
    from argparse import ArgumentParser

MOST_MINUTES = MOST_OPEN // timedelta(minutes=1)
ACTIONS = {
    "create": "create an account; asks for its password",
    "password": "set the password, and end all sessions of the user",
    "disable": "let the user log in nowhere: sessions end, tokens stop, all else stays stored",
    "enable": "let a disabled user log in again",
    "unlock": "forget failed logins",
    "remove-second-factors": "remove app, passkeys and recovery codes",
    "end-sessions": "log the user out everywhere",
    "open": "let the user log in by password or passkey for a while, without the provider",
}


class Command(BaseCommand):
    help = "Create, disable and enable accounts, and help a user that cannot log in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for action, words in ACTIONS.items():
            sub = actions.add_parser(action, help=words, description=words)
            sub.add_argument("user", help="name of the user")
            if action == "open":
                sub.add_argument(
                    "--minutes",
                    type=int,
                    default=60,
                    help=f"until when: 0 (closed again) to {MOST_MINUTES} minutes from now (default: 60)",
                )
            if action in {"create", "password"}:
                sub.add_argument("--stdin", action="store_true", help="read the password from standard input")
            if action == "create":
                sub.add_argument("--email", default="", help="address for messages")
                sub.add_argument("--no-password", action="store_true", help="a proxy logs the user in")
                sub.add_argument(
                    "--role",
                    action="append",
                    default=[],
                    help="role to grant, such as operator or site_admin:ncsa; may be repeated",
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
        try:
            if action == "bind-issuer":
                done = self._bind(options["issuer"])
            elif action == "create":
                done = self._create(options["user"], options)
            else:
                owner = named_user(options["user"])
                done = getattr(self, f"_{action.replace('-', '_')}")(owner, options)
        except (AccountError, RoleError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(done)

    def _create(self, name: str, options: dict[str, Any]) -> str:
        users.check_name(name)  # before the password is asked for
        grants = [roles.parse_grant(text) for text in options["role"]]
        password = None if options["no_password"] else self._typed(name, from_stdin=options["stdin"])
        user = users.create(name, password, grants, {"email": options["email"]})
        shown = ", ".join(str(grant) for grant in roles.grants_of(user))
        return f"{user} created: {shown or 'no role, reads as a viewer'}."

    def _password(self, user: User, options: dict[str, Any]) -> str:
        number = users.set_password(user, self._typed(user.get_username(), from_stdin=options["stdin"]))
        return f"Password of {user} set; {counted(number, 'session')} ended{self._closed(user)}."

    def _disable(self, user: User, _options: dict[str, Any]) -> str:
        if not user.is_active:
            return f"{user} is disabled already: nothing is changed."
        number = users.disable(user)
        return f"{user} is disabled; {counted(number, 'session')} ended, and its tokens stop."

    def _enable(self, user: User, _options: dict[str, Any]) -> str:
        if user.is_active:
            return f"{user} is enabled already: nothing is changed."
        users.enable(user)
        return f"{user} is enabled{self._locked(user)}."

    def _unlock(self, user: User, _options: dict[str, Any]) -> str:
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

    def _remove_second_factors(self, user: User, _options: dict[str, Any]) -> str:
        number, _ = Authenticator.objects.filter(user=user).delete()
        opens = door_reasons.what_opens(user, timezone.now())
        if not number:
            return f"{user} has no second factor, so nothing is changed: {opens}."
        return f"{counted(number, 'second factor')} of {user} removed, and all sessions ended: {opens}."

    def _end_sessions(self, user: User, _options: dict[str, Any]) -> str:
        return f"{counted(users.end_sessions(user), 'session')} of {user} ended."

    def _open(self, user: User, options: dict[str, Any]) -> str:
        """Open the local door; with which roles the user can then log in must be true when it is said."""
        minutes = options["minutes"]
        if not 0 <= minutes <= MOST_MINUTES:
            raise CommandError(f"--minutes: expected 0 to {MOST_MINUTES}, got {minutes}")
        if not user.is_active:
            raise CommandError(f"{user} is disabled: enable it first, by manage.py account enable {user}")
        identity = roles.usual_identity(user)
        if minutes and not is_admitted(user, identity):
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
        if not subjects and before == configured.url:
            raise CommandError(f"{before} is the configured issuer: its identities belong to it already")
        if not subjects:
            others = Identity.objects.exclude(issuer=configured.url).order_by()
            issuers = sorted(map(repr, others.values_list("issuer", flat=True).distinct()))
            raise CommandError(
                f"there is no identity of the issuer {before!r}; other issuers than the configured one,"
                f" {configured.url}, are: {', '.join(issuers) or 'none'}"
            )
        there = Identity.objects.filter(issuer__in=names_of(configured.url)).exclude(issuer=before)
        if both := there.filter(subject__in=subjects).first():
            raise CommandError(
                f"{both.subject!r} is known there as well, as the user {both.user}:"
                " disconnect one of the two first"
            )
        number = rows.update(issuer=configured.url, is_verified=False)
        note("identities", before, before=before, after=configured.url)
        noun = "identity" if number == 1 else "identities"
        return f"{number} {noun} of {before} bound to {configured.url}, and verified at the next login."

    def _advice(self, user: User) -> str:
        if doors.has_key(user):
            return ""
        return (
            ", but has no password, and no passkey that logs in without one:"
            f" set a password by manage.py account password {user}"
        )

    def _closed(self, user: User) -> str:
        """Return, for the end of a sentence, that the password opens nothing now, if so."""
        closed = door_reasons.closed_door(user, timezone.now())
        if closed is None:
            return ""
        return f", but no password opens the account now: {closed.reason}. An administrator {closed.remedy}"

    def _locked(self, user: User) -> str:
        """Return, for the end of a sentence, that no login opens the account now, if so."""
        why = door_reasons.locked_because(user, timezone.now())
        return f", but no login opens the account now: {why}" if why else ""

    def _typed(self, name: str, *, from_stdin: bool) -> str:
        """Return the password that is typed twice, or the first line of standard input."""
        if from_stdin:
            if password := sys.stdin.readline().rstrip("\r\n"):
                return password
            raise CommandError(f"no password for {name} on standard input: expected it as the first line")
        if not sys.stdin.isatty():
            raise CommandError("no terminal to ask for the password: send it with --stdin")
        first, second = (getpass.getpass(f"{words} for {name}: ") for words in ("Password", "Again"))
        if first != second:
            raise CommandError("nothing is changed: the two passwords differ")
        return first
