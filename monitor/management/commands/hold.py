"""``manage.py hold pause|drain|resume|list``: keep what is somewhere from beginning."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from monitor.ledger.holds import HoldError, describe_hold, hold, hold_progress, resume
from monitor.management.caller import caller
from monitor.management.scopes import add_scopes, scope_of
from monitor.models import Hold
from monitor.models.hold import HoldMode

if TYPE_CHECKING:
    from argparse import ArgumentParser

POLL_SECONDS = 0.5
LATEST = 50
VERBS = {
    HoldMode.PAUSE: "nothing begins from now on; what is claimed is taken back, what runs goes on",
    HoldMode.DRAIN: "nothing is claimed from now on; what is claimed or running goes on",
    "resume": "end a hold",
}


class Command(BaseCommand):
    help = "Pause, drain or resume a series, a suite, a site or a reporter; list what is held."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, meaning in VERBS.items():
            one = verbs.add_parser(verb, help=meaning, description=meaning)
            add_scopes(one, required=True)
            one.add_argument("--why", required=True, help="kept, and shown wherever it matters")
            if verb != "resume":
                end = one.add_mutually_exclusive_group()
                end.add_argument("--until", help="when it ends by itself: 2026-03-01T18:00Z")
                end.add_argument("--hours", type=float, help="after how long it ends by itself")
                one.add_argument("--wait", action="store_true", help="until nothing runs there any more")
        listing = verbs.add_parser("list", help="what is held now")
        listing.add_argument(
            "--log", action="store_true", help=f"the latest {LATEST} holds, those that ended too"
        )

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            if verb == "list":
                self._list(log=options["log"])
            elif verb == "resume":
                self._resume(options)
            else:
                self._hold(HoldMode(verb), options)
        except HoldError as error:
            raise CommandError(str(error)) from error

    def _hold(self, mode: HoldMode, options: dict[str, Any]) -> None:
        scope, now = scope_of(options), timezone.now()
        until = _until(options, now)
        made = hold(scope, mode, who=caller(), why=options["why"], now=now, until=until)
        self._say(made)
        while options["wait"] and hold_progress([made])[0].left:
            time.sleep(POLL_SECONDS)
        if options["wait"]:
            self._say(made)

    def _resume(self, options: dict[str, Any]) -> None:
        scope = scope_of(options)
        ended = resume(scope, who=caller(), why=options["why"], now=timezone.now())
        self.stdout.write(f"{ended.scope}: resumed; it was {describe_hold(ended)}")

    def _list(self, *, log: bool) -> None:
        now = timezone.now()
        found = list(Hold.objects.all()[:LATEST] if log else Hold.objects.at(now))
        for one in found:
            if one.ended_at is None:
                self._say(one)
            else:
                end = f"ended {one.ended_at:%Y-%m-%d %H:%M} UTC by {one.ended_by}"
                self.stdout.write(f"{one.scope}: {describe_hold(one)}; {end}: {one.ended_why}".rstrip(": "))
        if not found:
            self.stdout.write("nothing is held")

    def _say(self, one: Hold) -> None:
        self.stdout.write(f"{one.scope}: {hold_progress([one])[0].words}; {describe_hold(one)}")
        self.stdout.flush()


def _until(options: dict[str, Any], now: datetime) -> datetime | None:
    """When it shall end by itself; a time without an offset is UTC.

    Raises:
        CommandError: what was given is no time.
    """
    if options["until"]:
        return _time(options["until"])
    if options["hours"] is None:
        return None
    try:
        return now + timedelta(hours=options["hours"])
    except (OverflowError, ValueError) as error:
        raise CommandError(f"--hours: expected a number of hours, got {options['hours']}") from error


def _time(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"--until: expected a time such as 2026-03-01T18:00Z, got {text!r}")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
