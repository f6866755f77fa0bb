"""``manage.py report study``: repeat the study of two grids with the runs in the depot, as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from forecasting.commands.study import document, lines
from monitor.forecasts.study import WARM_UP, Study, StudyFacts, study
from monitor.units import coarse_seconds, seconds

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Print a report. study: errors of forecasts of an application, by method."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["study"])
        parser.add_argument("--application", default="preco", help="name of the application (preco)")
        parser.add_argument("--probe", default="gather", help="name of the predicting probe (gather)")
        parser.add_argument("--days", type=float, help="only runs of the last DAYS days (default: all)")
        parser.add_argument(
            "--warm-up",
            type=int,
            default=WARM_UP,
            help=f"first runs per series that are not scored ({WARM_UP})",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(
        self, *, application: str, probe: str, days: float | None, warm_up: int, **options: Any
    ) -> None:
        if days is not None and not 0 < days <= 36_500:
            raise CommandError(f"--days: expected more than 0 and at most 36500, got {days:g}")
        if warm_up < 0:
            raise CommandError(f"--warm-up: expected 0 or more, got {warm_up}")
        since = None if days is None else timezone.now() - timedelta(days=days)
        result = study(application, probe, warm_up=warm_up, since=since)
        if result.is_empty:
            raise CommandError(_missing_data(result, application, probe, warm_up))
        if options["json"]:
            facts = asdict(result.facts) if result.facts else None
            self.stdout.write(json.dumps({**document(result.cells), "facts": facts}, indent=2))
            return
        self.stdout.write("\n".join([*lines(result.cells), "", *_notes(result, application, probe)]))


def _missing_data(result: Study, application: str, probe: str, warm_up: int) -> str:
    runs = result.facts.runs if result.facts else 0
    return (
        f"too few runs for a table: {runs} runs of {application} have passed. Each of its series needs more "
        f"than {warm_up} that started after 10 passed runs of a series of {probe} with a common resource"
    )


def _notes(result: Study, application: str, probe: str) -> Iterator[str]:
    """Yield notes: the meaning of the figures, and reasons why they differ from the published figures."""
    yield f"Mean relative error of forecasts of {application} (coefficient of variation), from {probe}."
    if result.facts is None:
        return
    yield from (f"- {difference}" for difference in _differences(result.facts, application, probe))


def _differences(facts: StudyFacts, application: str, probe: str) -> Iterator[str]:
    yield (
        f"Published: half a year on two production grids. Here: {facts.runs} runs of {facts.applications} "
        f"series in {coarse_seconds(facts.period_seconds)}, so a few slow runs weigh more."
    )
    yield (
        f"{application} takes {seconds(facts.total_seconds)} here and took minutes to hours there: the time "
        "to start programs and connections varies as much, and is a larger part of the total."
    )
    if facts.probe_age_seconds is not None:
        yield (
            f"{probe} started {seconds(facts.probe_age_seconds)} before {application} (median): the "
            "regression helps if the cause of a slow run lasts longer than that."
        )
    yield (
        "TSP is the battery without its first errors. All seven methods are scored on the same runs: those "
        "that each of them could forecast (docs/forecasting.md)."
    )
