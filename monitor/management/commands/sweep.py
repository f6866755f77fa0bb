"""``manage.py sweep SERIES``: export a stored sweep as CSV for ``python -m forecasting``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from monitor.analysis.performance.sweep_csv import sweep_csv
from monitor.analysis.performance.sweeps import StoredSweep, newest_to_analyse, stored_sweeps
from monitor.management.find_series import find_series
from monitor.management.time_options import parse_time

_EXAMPLE = "2026-03-01T18:00Z"


class Command(BaseCommand):
    help = (
        "Export a sweep of a series of the probe storage_sweep or streams as CSV, for `python -m forecasting "
        "effects` and `sweet-spot`. Without --began the newest sweep with enough passes for them (2, and 3)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("series")
        parser.add_argument("--list", action="store_true", dest="is_list", help="list the sweeps")
        parser.add_argument("--began", metavar="TIME", help="the sweep that began then, as --list shows it")
        parser.add_argument("--output", type=Path, metavar="FILE.csv", help="(default: standard output)")

    def handle(self, *, series: str, is_list: bool, began: str | None, output: Path | None, **_: Any) -> None:
        chosen = find_series(series)
        sweeps = stored_sweeps(chosen)
        if not sweeps:
            raise CommandError(
                f"{chosen.name} has no sweep: expected stored runs of the probe storage_sweep or streams, "
                f"got the probe {chosen.probe}"
            )
        if is_list:
            self.stdout.write("\n".join(map(_line, sweeps)))
            return
        text = sweep_csv(_chosen(sweeps, began))
        if output is None:
            self.stdout.write(text, ending="")
            return
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"cannot write {output}: {error.strerror}") from None


def _line(sweep: StoredSweep) -> str:
    cells = len({value.levels for value in sweep.values})
    passes = "1 pass" if sweep.passes == 1 else f"{sweep.passes} passes"
    factors = ", ".join(sweep.varied) or "no factor has two levels"
    return (
        f"{sweep.began_at:%Y-%m-%dT%H:%M:%SZ}  {cells} combinations, {passes}, "
        f"{len(sweep.values)} values: {factors}"
    )


def _chosen(sweeps: Sequence[StoredSweep], began: str | None) -> StoredSweep:
    if began is None:
        return newest_to_analyse(sweeps)
    wanted: datetime = parse_time("--began", began, example=_EXAMPLE).astimezone(UTC)
    for sweep in sweeps:
        if sweep.began_at.replace(microsecond=0) == wanted.replace(microsecond=0):
            return sweep
    raise CommandError(f"--began: no sweep began at {began}; list them with --list")
