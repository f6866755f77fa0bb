"""``manage.py depot``: status and maintenance of the depot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder

from monitor.analysis.outcomes import worker as outcomes
from monitor.core import env
from monitor.core.db import accounts
from monitor.core.db.timescale_extension import TimescaleUnavailable
from monitor.depot import migrate_to_timescale
from monitor.depot import status as depot_status
from monitor.depot.migrate_to_timescale import MigrationInProgress
from monitor.depot.move_to_hypertables import CopyDiffers, TablesInUse
from monitor.depot.rollups import worker
from monitor.management.depot_data import DepotDataCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(DepotDataCommand):
    help = "Show the status of the depot; back up, restore, migrate and repair it (docs/depot.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        status = verbs.add_parser("status", help="show engine, licence, sizes, and pending rollups")
        status.add_argument("--json", action="store_true", help="print JSON")
        status.add_argument("--parts", action="store_true", help="show every partition of every table")
        migrate = verbs.add_parser("migrate-to-timescale", help="convert tables to TimescaleDB hypertables")
        migrate.add_argument(
            "--abandon",
            action="store_true",
            help="undo an unfinished migration; keep the plain tables",
        )
        verbs.add_parser("rebuild-rollups", help="recompute all rollups from the stored samples")
        verbs.add_parser(
            "accounts",
            help="create an account for each service in the database, with the rights that it needs;"
            " repeat it after each migration",
        )
        self.add_data_verbs(verbs)

    def handle(self, *, verb: str, **options: Any) -> None:
        method: Callable[..., None] = getattr(self, f"_{verb.replace('-', '_')}")
        method(**options)

    def _status(self, *, json: bool, parts: bool, **_: Any) -> None:
        status = depot_status.status()
        lines = [_document(status.document())] if json else depot_status.text(status, with_parts=parts)
        for line in lines:
            self.stdout.write(line)

    def _migrate_to_timescale(self, *, abandon: bool, **_: Any) -> None:
        try:
            if abandon:
                result = (
                    "Abandoned." if migrate_to_timescale.abandon() else "There is no unfinished migration."
                )
            else:
                is_migrated = migrate_to_timescale.migrate(self.stderr.write)
                result = (
                    "The depot uses TimescaleDB." if is_migrated else "The depot uses TimescaleDB already."
                )
        except (
            TimescaleUnavailable,
            MigrationInProgress,
            TablesInUse,
            CopyDiffers,
        ) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(result)

    def _accounts(self, **_: Any) -> None:
        try:
            roles = accounts.grant(env.database_passwords(accounts.SERVICES))
        except (env.InvalidVariable, accounts.AccountsRefused) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"The accounts {' and '.join(roles)} have their rights.")

    def _rebuild_rollups(self, **_: Any) -> None:
        for progress in worker.rebuild():
            self.stderr.write(f"{progress.done} of {progress.hours} hours")
        outcomes.recount_all()
        self.stdout.write("All rollups are recomputed. Outcomes of runs are counted again by the service.")


def _document(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, cls=DjangoJSONEncoder)
