"""``manage.py report study``: the prediction table of the study of two grids, from what is in the depot."""

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
    help = "Reports of what the depot has. study: how far off forecasts of an application are, by what."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["study"])
        parser.add_argument(
            "--application", default="preco", help="the probe that is the application (preco)"
        )
        parser.add_argument("--probe", default="gather", help="the probe that predicts it (gather)")
        parser.add_argument("--days", type=float, help="runs of so many days until now; all by default")
        parser.add_argument(
            "--warm-up", type=int, default=WARM_UP, help=f"do not judge a series' first runs ({WARM_UP})"
        )
        parser.add_argument("--json", action="store_true", help="one document instead of a table")

    def handle(
        self, *, application: str, probe: str, days: float | None, warm_up: int, **options: Any
    ) -> None:
        if days is not None and not 0 < days <= 36_500:
            raise CommandError(f"--days: expected more than 0 and at most 36500, got {days:g}")
        if warm_up < 0:
            raise CommandError(f"--warm-up: expected 0 or more, got {warm_up}")
        since = None if days is None else timezone.now() - timedelta(days=days)
        found = study(application, probe, warm_up=warm_up, since=since)
        if found.is_empty:
            raise CommandError(_why_nothing(found, application, probe, warm_up))
        if options["json"]:
            facts = asdict(found.facts) if found.facts else None
            self.stdout.write(json.dumps({**document(found.cells), "facts": facts}, indent=2))
            return
        self.stdout.write("\n".join([*lines(found.cells), "", *_said(found, application, probe)]))


def _why_nothing(found: Study, application: str, probe: str, warm_up: int) -> str:
    runs = found.facts.runs if found.facts else 0
    return (
        f"no table yet: {runs} runs of {application} have passed, and each of its series needs more than "
        f"{warm_up} that began after {probe}, on a series that shares a resource with it, had passed 10 times"
    )


def _said(found: Study, application: str, probe: str) -> Iterator[str]:
    """What the figures are of, and why they are not the published ones."""
    yield f"Mean relative error of forecasts of {application} (coefficient of variation), from {probe}."
    if found.facts is None:
        return
    yield from (f"- {difference}" for difference in _differences(found.facts, application, probe))


def _differences(facts: StudyFacts, application: str, probe: str) -> Iterator[str]:
    yield (
        f"Published: half a year on two production grids. Here: {facts.runs} runs of {facts.applications} "
        f"series in {coarse_seconds(facts.period_seconds)}, so a few slow runs weigh more."
    )
    yield (
        f"{application} takes {seconds(facts.total_seconds)} here and took minutes to hours there: what "
        "starting programs and connections takes varies as much, and is a larger part of the whole."
    )
    if facts.probe_age_seconds is not None:
        yield (
            f"{probe} had begun {seconds(facts.probe_age_seconds)} before {application} (median): a line "
            "through both helps where what slows one down lasts longer than that."
        )
    yield (
        "TSP is the battery without its first misses, and all seven are judged on the same runs: those of "
        "which each of them had an answer (docs/forecasting.md)."
    )
