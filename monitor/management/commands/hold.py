"""``manage.py hold pause|drain|resume|list``: keep runs of a scope from starting."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.management.caller import caller_name
from monitor.management.scope_options import add_scope_options, scope_from_options
from monitor.management.time_options import parse_time
from monitor.models import Hold
from monitor.models.hold import HoldMode
from monitor.runs.ledger.holds import HoldError, describe_hold, hold, hold_progress, resume

if TYPE_CHECKING:
    from argparse import ArgumentParser

POLL_SECONDS = 0.5
LATEST = 50
VERBS = {
    HoldMode.PAUSE: "start no more runs; take claims back, let started runs end",
    HoldMode.DRAIN: "claim no more runs; let claimed and started runs end",
    "resume": "end a hold",
}


class Command(BaseCommand):
    help = "Pause, drain or resume a series, a suite, a site or a reporter; list current holds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, meaning in VERBS.items():
            verb_parser = verbs.add_parser(verb, help=meaning, description=meaning)
            add_scope_options(verb_parser, required=True)
            verb_parser.add_argument("--why", required=True, help="reason, shown on pages and in the history")
            if verb != "resume":
                end = verb_parser.add_mutually_exclusive_group()
                end.add_argument("--until", help="end of the hold: 2026-03-01T18:00Z")
                end.add_argument("--hours", type=float, help="duration of the hold")
                verb_parser.add_argument("--wait", action="store_true", help="wait until no run is left")
        listing = verbs.add_parser("list", help="list current holds")
        listing.add_argument(
            "--log", action="store_true", help=f"list the latest {LATEST} holds, including ended ones"
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
        scope, now = scope_from_options(options), timezone.now()
        until = _until(options, now)
        placed = hold(scope, mode, who=caller_name(), why=options["why"], now=now, until=until)
        self._print(placed)
        while options["wait"] and hold_progress([placed])[0].left:
            time.sleep(POLL_SECONDS)
        if options["wait"]:
            self._print(placed)

    def _resume(self, options: dict[str, Any]) -> None:
        scope = scope_from_options(options)
        ended = resume(scope, who=caller_name(), why=options["why"], now=timezone.now())
        self.stdout.write(f"{ended.scope}: resumed; it was {describe_hold(ended)}")

    def _list(self, *, log: bool) -> None:
        now = timezone.now()
        holds = list(Hold.objects.all()[:LATEST] if log else Hold.objects.at(now))
        for listed in holds:
            if listed.ended_at is None:
                self._print(listed)
            else:
                end = f"ended {listed.ended_at:%Y-%m-%d %H:%M} UTC by {listed.ended_by}"
                self.stdout.write(
                    f"{listed.scope}: {describe_hold(listed)}; {end}: {listed.ended_why}".rstrip(": ")
                )
        if not holds:
            self.stdout.write("there is no hold")

    def _print(self, printed: Hold) -> None:
        self.stdout.write(f"{printed.scope}: {hold_progress([printed])[0].words}; {describe_hold(printed)}")
        self.stdout.flush()


def _until(options: dict[str, Any], now: datetime) -> datetime | None:
    """Return the end of the hold, or None if the hold has no end; a time without an offset is UTC.

    Raises:
        CommandError: an option is invalid.
    """
    if options["until"]:
        return parse_time("--until", options["until"], example="2026-03-01T18:00Z")
    if options["hours"] is None:
        return None
    try:
        return now + timedelta(hours=options["hours"])
    except (OverflowError, ValueError) as error:
        raise CommandError(f"--hours: expected a number of hours, got {options['hours']}") from error
