"""``manage.py run SERIES``: run a series now, or all of a suite, a site or a reporter."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor import health
from monitor.management.caller import caller_name
from monitor.management.scope_options import add_scope_options, scope_from_options
from monitor.models import Run, Series
from monitor.models.hold import HoldKind, Scope
from monitor.models.run import State
from monitor.runs.ledger import agent_runs, heartbeats
from monitor.runs.ledger.claim import claim_one
from monitor.runs.ledger.holds import HoldError, describe_hold
from monitor.runs.ledger.run_now import run_all, run_now
from monitor.runs.worker.run_claimed import run_claimed

if TYPE_CHECKING:
    from argparse import ArgumentParser

POLL_SECONDS = 0.2


class Command(BaseCommand):
    help = "Run a series now, through its reporter; exit with 0 if it passed. Or request runs of a scope."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("series", nargs="?", default="", help="name of the series")
        add_scope_options(parser, (HoldKind.SUITE, HoldKind.SITE, HoldKind.REPORTER), required=False)
        parser.add_argument("--why", default="", help="reason, stored with the run; required for a scope")
        parser.add_argument("--force", action="store_true", help="run series under a hold too")
        parser.add_argument("--here", action="store_true", help="run it in this process, without Celery")

    def handle(self, *, series: str, why: str, force: bool, here: bool, **options: Any) -> None:
        try:
            if series:
                self._run_one(_find(series), why, force=force, here=here)
            else:
                self._request_all(scope_from_options(options), why, force=force)
        except HoldError as error:
            raise CommandError(str(error)) from error

    def _run_one(self, series: Series, why: str, *, force: bool, here: bool) -> None:
        if here and series.reporter.is_remote:
            raise CommandError(
                f"the agent of {series.reporter} runs {series.name}; request it without --here"
            )
        run = run_now(series, who=caller_name(), why=why, force=force)
        if here:
            _execute_here(run)
        self._follow(run)

    def _request_all(self, scope: Scope, why: str, *, force: bool) -> None:
        """Request runs and print them, without waiting for them."""
        requested = run_all(scope, who=caller_name(), why=why, force=force)
        for run in requested.runs:
            self.stdout.write(f"{run.series.name}: requested, run {run.pk}")
        for series, hold in requested.held:
            self.stdout.write(f"{series.name}: not run: the {hold.scope} is {describe_hold(hold)}")

    def _follow(self, run: Run) -> None:
        """Print every change of the run until it has ended."""
        previous = ""
        while True:
            run.refresh_from_db(from_queryset=Run.objects.filter(slot=run.slot))
            current = f"{run.state} {run.stage}".rstrip()
            if current != previous:
                self.stdout.write(f"{timezone.now():%H:%M:%S} {run.series.name}: {current}")
                previous = current
                self.stdout.flush()
            if not run.is_pending:
                break
            _check_progress(run)
            time.sleep(POLL_SECONDS)
        if run.state != State.PASSED:
            raise CommandError(run.reason or run.state)


def _check_progress(run: Run) -> None:
    """Raise CommandError if nothing will start *run*; *run* may wait for another run of its series."""
    now = timezone.now()
    if run.state != State.EXPECTED or now - run.slot <= heartbeats.SILENT_AFTER:
        return
    if run.series.reporter.is_remote:
        name = run.series.reporter.name
        if cause := agent_runs.absences({name}, now)[name]:
            raise CommandError(f"the run is requested, and runs when its agent is back: {cause}")
        return
    cause = "; ".join(problem.text.rstrip(".") for problem in health.problems(now))
    if run.series.reporter.capacity == 0:
        cause = f"its reporter {run.series.reporter.name} has a capacity of 0"
    elif heartbeats.was_silent(heartbeats.SCHEDULER, now):
        cause = f"{cause or 'nothing claims it'}: is a scheduler running? (or use --here)"
    if cause:
        raise CommandError(f"the run has been waiting for {(now - run.slot).total_seconds():.0f} s: {cause}")


def _find(name: str) -> Series:
    series = Series.objects.filter(name=name).first()
    if series is None:
        names = ", ".join(Series.objects.values_list("name", flat=True)) or "none yet"
        raise CommandError(f"there is no series {name!r}; expected one of: {names}")
    return series


def _execute_here(run: Run) -> None:
    claim = claim_one(run, timezone.now())
    if claim is not None:
        run_claimed([claim.run_id], [claim.slot])
