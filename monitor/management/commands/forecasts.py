"""``manage.py forecasts``: what forecasters know, and how it is made of the depot anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.forecasts import refresh
from monitor.forecasts.choose_predictors import choose_predictors
from monitor.forecasts.status import behind_of, status
from monitor.models import Series

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Tell what forecasters know, or let them read the depot anew (docs/forecasting.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("status", help="tell what is followed, and what is left to do")
        rebuild = verbs.add_parser("rebuild", help="make what is known anew, of all that the depot has")
        rebuild.add_argument("series", nargs="*", metavar="SERIES", help="these only")

    def handle(self, *, verb: str, **options: Any) -> None:
        if verb == "status":
            for line in status().lines():
                self.stdout.write(line)
        else:
            self._rebuild(options["series"])

    def _rebuild(self, names: list[str]) -> None:
        """Whoever is killed has it done by the workers, or goes on by calling it again."""
        series = _keys(names)
        choose_predictors(series)
        metrics = refresh.reset(series)
        while left := behind_of(series):
            self.stderr.write(f"{left} of {metrics + len(series)} are left")
            refresh.refresh(timezone.now(), wait=True)
        self.stdout.write(f"{metrics} metrics of {len(series)} series know what the depot has.")


def _keys(names: list[str]) -> list[int]:
    """Of series by name; of none: of all. Raises CommandError."""
    found = dict(Series.objects.values_list("name", "pk"))
    unknown = sorted(set(names) - found.keys())
    if unknown:
        raise CommandError(f"there is no series {unknown[0]!r}")
    return sorted(found[name] for name in names or found)
