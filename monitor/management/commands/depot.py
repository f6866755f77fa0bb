"""``manage.py depot``: what the depot is, and what is done to all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder

from monitor.db.timescale_extension import TimescaleUnavailable
from monitor.depot import migrate_to_timescale
from monitor.depot import status as depot_status
from monitor.depot.migrate_to_timescale import MigrationInProgress
from monitor.depot.move_to_hypertables import CopyDiffers, TablesInUse
from monitor.depot.rollups import worker
from monitor.management.keeping import Keeping

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(Keeping):
    help = "Tell what the depot is, or do something to all of it (docs/depot.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        status = verbs.add_parser(
            "status", help="tell engine, licence, sizes, and what waits to be rolled up"
        )
        status.add_argument("--json", action="store_true", help="for programs")
        status.add_argument("--parts", action="store_true", help="every part of every table")
        migrate = verbs.add_parser("migrate-to-timescale", help="use TimescaleDB, which the server has")
        migrate.add_argument(
            "--abandon",
            action="store_true",
            help="remove what an unfinished call has made, and stay as it is",
        )
        verbs.add_parser("rebuild-rollups", help="make all rollups anew, from the samples that there are")
        self.add_keeping(verbs)

    def handle(self, *, verb: str, **options: Any) -> None:
        does: Callable[..., None] = getattr(self, f"_{verb.replace('-', '_')}")
        does(**options)

    def _status(self, *, json: bool, parts: bool, **_: Any) -> None:
        found = depot_status.status()
        lines = [_document(found.document())] if json else depot_status.text(found, with_parts=parts)
        for line in lines:
            self.stdout.write(line)

    def _migrate_to_timescale(self, *, abandon: bool, **_: Any) -> None:
        try:
            if abandon:
                said = "Abandoned." if migrate_to_timescale.abandon() else "There was nothing to abandon."
            else:
                done = migrate_to_timescale.migrate(self.stderr.write)
                said = "The depot uses TimescaleDB." if done else "The depot uses TimescaleDB already."
        except (
            TimescaleUnavailable,
            MigrationInProgress,
            TablesInUse,
            CopyDiffers,
        ) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(said)

    def _rebuild_rollups(self, **_: Any) -> None:
        for progress in worker.rebuild():
            self.stderr.write(f"{progress.done} of {progress.hours} hours")
        self.stdout.write("All rollups are made of the samples that there are.")


def _document(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, cls=DjangoJSONEncoder)
