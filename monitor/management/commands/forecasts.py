"""``manage.py forecasts``: show the states of forecasts, or compute them from scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.analysis.forecasts import refresh
from monitor.analysis.forecasts.choose_predictors import choose_predictors
from monitor.analysis.forecasts.status import behind_of, status_lines
from monitor.models import Series

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Show the state of forecasts, or compute it from scratch (docs/forecasting.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("status", help="show what is followed, and what is still to do")
        rebuild = verbs.add_parser("rebuild", help="compute all states from scratch, from the depot")
        rebuild.add_argument("series", nargs="*", metavar="SERIES", help="only those of these series")

    def handle(self, *, verb: str, **options: Any) -> None:
        if verb == "status":
            for line in status_lines():
                self.stdout.write(line)
        else:
            self._rebuild(options["series"])

    def _rebuild(self, names: list[str]) -> None:
        """Compute states from scratch; if this process is killed, the workers complete the computation."""
        series = _keys(names)
        choose_predictors(series)
        metrics = refresh.reset(series)
        while left := behind_of(series):
            self.stderr.write(f"{left} of {metrics + len(series)} are left")
            refresh.refresh(timezone.now(), wait=True)
        self.stdout.write(f"The states of {metrics} metrics of {len(series)} series are complete.")


def _keys(names: list[str]) -> list[int]:
    """Return the primary keys of the series *names*; without names, of all series.

    Raises:
        CommandError: a name is unknown.
    """
    keys = dict(Series.objects.values_list("name", "pk"))
    unknown = sorted(set(names) - keys.keys())
    if unknown:
        raise CommandError(f"there is no series {unknown[0]!r}")
    return sorted(keys[name] for name in names or keys)
