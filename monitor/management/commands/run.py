"""``manage.py run SERIES``: run a series now, or all of a suite, a site or a reporter."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor import health
from monitor.ledger import heartbeats
from monitor.ledger.claim import claim_one
from monitor.ledger.holds import HoldError, describe_hold
from monitor.ledger.run_now import run_all, run_now
from monitor.management.caller import caller
from monitor.management.scopes import add_scopes, scope_of
from monitor.models import Run, Series
from monitor.models.hold import HoldKind, Scope
from monitor.models.run import State
from monitor.worker.run_claimed import run_claimed

if TYPE_CHECKING:
    from argparse import ArgumentParser

POLL_SECONDS = 0.2


class Command(BaseCommand):
    help = "Run a series now, through its reporter; exits 0 if it passed. Or ask for all runs of a place."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("series", nargs="?", default="", help="the name of the series")
        add_scopes(parser, (HoldKind.SUITE, HoldKind.SITE, HoldKind.REPORTER), required=False)
        parser.add_argument("--why", default="", help="kept with the run; needed for more than one")
        parser.add_argument("--force", action="store_true", help="even what is held")
        parser.add_argument("--here", action="store_true", help="run it in this process, without Celery")

    def handle(self, *, series: str, why: str, force: bool, here: bool, **options: Any) -> None:
        try:
            if series:
                self._run_one(_find(series), why, force=force, here=here)
            else:
                self._ask_for_all(scope_of(options), why, force=force)
        except HoldError as error:
            raise CommandError(str(error)) from error

    def _run_one(self, series: Series, why: str, *, force: bool, here: bool) -> None:
        run = run_now(series, who=caller(), why=why, force=force)
        if here:
            _execute_here(run)
        self._follow(run)

    def _ask_for_all(self, scope: Scope, why: str, *, force: bool) -> None:
        """Say what was asked for, without waiting for it."""
        asked = run_all(scope, who=caller(), why=why, force=force)
        for run in asked.runs:
            self.stdout.write(f"{run.series.name}: asked for, run {run.pk}")
        for series, hold in asked.held:
            self.stdout.write(f"{series.name}: passed over, the {hold.scope} is {describe_hold(hold)}")

    def _follow(self, run: Run) -> None:
        """Print every change of the run until it has ended."""
        shown = ""
        while True:
            run.refresh_from_db(from_queryset=Run.objects.filter(slot=run.slot))
            now_shown = f"{run.state} {run.stage}".rstrip()
            if now_shown != shown:
                self.stdout.write(f"{timezone.now():%H:%M:%S} {run.series.name}: {now_shown}")
                shown = now_shown
                self.stdout.flush()
            if not run.is_pending:
                break
            _check_that_somebody_runs(run)
            time.sleep(POLL_SECONDS)
        if run.state != State.PASSED:
            raise CommandError(run.reason or run.state)


def _check_that_somebody_runs(run: Run) -> None:
    """Raise CommandError where *run* would wait for ever; one whose series is busy waits for its turn."""
    now = timezone.now()
    if run.state != State.EXPECTED or now - run.slot <= heartbeats.SILENT_AFTER:
        return
    silent = "; ".join(problem.text for problem in health.problems(now))
    if not silent and heartbeats.was_silent(heartbeats.SCHEDULER, now):
        silent = "nothing claims it: is a scheduler running? (or use --here)"
    if not silent and run.series.reporter.capacity == 0:
        silent = f"its reporter {run.series.reporter.name} has a capacity of 0"
    if silent:
        raise CommandError(
            f"the run waits in the ledger since {(now - run.slot).total_seconds():.0f} s: {silent}"
        )


def _find(name: str) -> Series:
    found = Series.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(Series.objects.values_list("name", flat=True)) or "none yet"
        raise CommandError(f"there is no series {name!r}; known are: {known}")
    return found


def _execute_here(run: Run) -> None:
    claim = claim_one(run, timezone.now())
    if claim is not None:
        run_claimed([claim.run_id], [claim.slot])
