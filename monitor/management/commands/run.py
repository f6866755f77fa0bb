"""``manage.py run SERIES``: run a series now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.models import Run, Series
from monitor.models.run import State
from monitor.services import health
from monitor.services.claim import claim_one
from monitor.services.execute import execute
from monitor.services.expand import BEAT
from monitor.services.run_now import run_now

if TYPE_CHECKING:
    from argparse import ArgumentParser

POLL_SECONDS = 0.2


class Command(BaseCommand):
    help = "Run a series now, through its reporter; exits 0 if it passed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("series", help="the name of the series")
        parser.add_argument("--here", action="store_true", help="run it in this process, without Celery")

    def handle(self, *, series: str, here: bool, **_: Any) -> None:
        run = run_now(_find(series), who="manage.py run")
        if here:
            _execute_here(run)
        self._follow(run)

    def _follow(self, run: Run) -> None:
        """Print every change of the run until it has ended."""
        shown = ""
        while True:
            run.refresh_from_db()
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
    if run.state != State.EXPECTED or now - run.slot <= health.SILENT_AFTER:
        return
    silent = "; ".join(problem.text for problem in health.problems(now))
    if not silent and health.was_silent(BEAT, now):
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
        execute(claim.run_id, claim.attempt)
