"""``manage.py token``: list, issue, rotate and revoke API tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.depot.access import roles, tokens
from monitor.depot.access.token_callers import TokenError
from monitor.depot.access.tokens import TokenRequest
from monitor.management.named_user import named_user
from monitor.models import ApiToken, Reporter
from monitor.models.role import act_as
from monitor.models.token import LIFETIME, READ, SCOPES

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from monitor.models.token import ApiTokenQuerySet

NEVER = "never"


class Command(BaseCommand):
    help = "List, issue, rotate and revoke API tokens. A token is shown once and not stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="list tokens, newest first")
        listing.add_argument("user", nargs="?", help="only those of this user")
        listing.add_argument("--all", action="store_true", help="also expired and revoked ones")
        issuing = verbs.add_parser("issue", help="issue a token and print it")
        issuing.add_argument("user", help="user whose permissions the token has")
        issuing.add_argument("--name", default="", help="purpose of the token")
        issuing.add_argument(
            "--scope", action="append", choices=SCOPES, help="may be repeated; default: read"
        )
        issuing.add_argument("--reporter", help="the reporter whose reports it may send; with --scope report")
        issuing.add_argument("--site", help="the only site at which it may run and manage anything")
        issuing.add_argument(
            "--days",
            default=str(LIFETIME.days),
            help=f"how long it is valid, or {NEVER} (default: %(default)s)",
        )
        rotating = verbs.add_parser("rotate", help="issue a token with the same rights, and print it")
        rotating.add_argument("token", help="its first characters, as listed")
        rotating.add_argument(
            "--grace-hours",
            type=float,
            default=tokens.GRACE / timedelta(hours=1),
            help="how long the present token stays valid (default: %(default)s)",
        )
        revoking = verbs.add_parser("revoke", help="revoke a token")
        revoking.add_argument("token", help="its first characters, as listed")
        revoking.add_argument(
            "--family", action="store_true", help="also the tokens that came of it: rotated or issued with it"
        )

    def handle(self, *, verb: str, **options: Any) -> None:
        now = timezone.now()
        try:
            match verb:
                case "list":
                    self._list(options["user"], now, with_ended=options["all"])
                case "issue":
                    self.stdout.write(tokens.issue(_request(options), now, issuer=None).text)
                case "rotate":
                    self._rotate(_find(options["token"], now).get(), _hours(options["grace_hours"]), now)
                case _:
                    found = _find(options["token"], now)
                    rows = ApiToken.objects.family(found.get()) if options["family"] else found
                    number = tokens.revoke(rows, now)
                    others = f", with {number - 1} that came of it" if number > 1 else ""
                    self.stdout.write(f"{options['token']}: revoked{others}")
        except TokenError as error:
            raise CommandError(str(error)) from error

    def _rotate(self, token: ApiToken, grace: timedelta, now: datetime) -> None:
        issued = tokens.rotate(token, now, caller=None, grace=grace)
        if issued.dropped_scopes:
            dropped = ", ".join(issued.dropped_scopes)
            self.stderr.write(f"without {dropped}, which the roles of {token.user} do not permit any more")
        end = issued.token.expires_at
        if end is not None and end == issued.token.family_expires_at:
            self.stderr.write(f"it ends with its family, at {end:%Y-%m-%d %H:%M}: issue a new one by then")
        self.stdout.write(issued.text)

    def _list(self, user: str | None, now: datetime, *, with_ended: bool) -> None:
        rows = ApiToken.objects.select_related("user", "reporter", "site").order_by("-pk")
        if user is not None:
            rows = rows.filter(user=_user(user))
        for token in rows if with_ended else rows.usable(now):
            self.stdout.write(_line(token, now))


def _line(token: ApiToken, now: datetime) -> str:
    bound = token.reporter or token.site
    used = (
        f"used {token.last_used_at:%Y-%m-%d %H:%M} from {token.last_used_from}"
        if token.last_used_at
        else "unused"
    )
    words = [
        token.prefix,
        token.user.get_username(),
        ",".join(token.scopes) + (f" at {bound}" if bound else ""),
        token.state(now),
        f"until {token.expires_at:%Y-%m-%d %H:%M}" if token.expires_at else "for ever",
        used,
        token.name,
    ]
    return "  ".join(words)


def _request(options: dict[str, Any]) -> TokenRequest:
    user, reporter, days = _user(options["user"]), options["reporter"], options["days"]
    if reporter is not None and not Reporter.objects.filter(name=reporter).exists():
        names = ", ".join(Reporter.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"--reporter: there is no reporter {reporter!r}; there are: {names}")
    if days != NEVER and not (days.isascii() and days.isdecimal() and len(days) < 10):
        raise CommandError(f"--days: expected a number of days, or {NEVER}, got {days!r}")
    return TokenRequest(
        user=user,
        name=options["name"] or f"token of {user}"[: tokens.MOST_NAME_CHARACTERS],
        scopes=options["scope"] or [READ],
        days=None if days == NEVER else int(days),
        reporter=reporter,
        site=options["site"],
    )


def _user(name: str) -> User:
    user = named_user(name)
    act_as(user, roles.usual_identity(user))
    return user


def _hours(hours: float) -> timedelta:
    try:
        return timedelta(hours=hours)
    except (OverflowError, ValueError) as error:
        raise CommandError(f"--grace-hours: expected a number of hours, got {hours}") from error


def _find(prefix: str, now: datetime) -> ApiTokenQuerySet:
    """Return the only valid token that begins with *prefix*, of which the first characters are stored."""
    found = ApiToken.objects.usable(now).select_related("user", "reporter", "site").filter(prefix=prefix[:10])
    if found.count() != 1:
        many = "several valid tokens begin" if found else "no valid token begins"
        raise CommandError(f"{many} with {prefix!r}; manage.py token list lists them")
    return found
