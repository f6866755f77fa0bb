"""Verbs of ``manage.py depot`` that copy, delete or recompute data: backup, restore, retain, reparse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.core.db.timescale_extension import TimescaleUnavailable
from monitor.core.units import humanised
from monitor.depot.retention.apply import apply_retention
from monitor.depot.retention.dry_run import preview_retention
from monitor.management.time_options import parse_time
from monitor.models import Series
from monitor.operations.backup.create import BackupError, back_up
from monitor.operations.backup.manifest import ManifestError, schema
from monitor.operations.backup.pg_tools import DumpError
from monitor.operations.backup.restore import RestoreError, create_database, restore
from monitor.runs.ingest.reparse import ReparseCounts, reparse

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from monitor.operations.backup.manifest import Manifest

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class DepotDataCommand(BaseCommand):
    """Base of ``manage.py depot``, with one method for each verb."""

    def add_data_verbs(self, verbs: _SubParsersAction[Any]) -> None:
        backup = verbs.add_parser("backup", help="copy the whole depot to a new directory, online")
        backup.add_argument("target", type=Path, metavar="DIRECTORY")
        restoring = verbs.add_parser("restore", help="restore a backup into an empty database, and audit it")
        restoring.add_argument("source", type=Path, metavar="DIRECTORY")
        restoring.add_argument(
            "--create", action="store_true", help="create the database of DATABASE_URL first"
        )
        for parser in (backup, restoring):
            parser.add_argument("--jobs", type=int, default=1, help="number of parallel processes (1)")
        retaining = verbs.add_parser("retain", help="delete data that exceed the retention of their suites")
        retaining.add_argument(
            "--dry-run", action="store_true", help="report what would be deleted; delete nothing"
        )
        parsing = verbs.add_parser("reparse", help="parse raw reports of older parser versions again")
        parsing.add_argument("--series", nargs="+", default=[], metavar="NAME", help="only these series")
        parsing.add_argument("--since", help="only slots from this time on: 2026-03-01T00:00Z")
        parsing.add_argument(
            "--dry-run", action="store_true", help="report what would change; change nothing"
        )

    def _backup(self, *, target: Path, jobs: int, **_: Any) -> None:
        try:
            manifest = back_up(target.absolute(), timezone.now(), jobs=max(jobs, 1))
        except (BackupError, DumpError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{target}: {_summary(manifest)}")

    def _restore(self, *, source: Path, jobs: int, create: bool, **_: Any) -> None:
        try:
            if create:
                create_database()
            manifest = restore(source.absolute(), jobs=max(jobs, 1))
        except (ManifestError, DumpError, RestoreError, TimescaleUnavailable) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{_summary(manifest)}: restored completely; the audit of the ledger is as in the backup."
        )
        if schema() != manifest.schema:
            self.stdout.write("The backup is of an older version: run manage.py migrate.")

    def _retain(self, *, dry_run: bool, **_: Any) -> None:
        if dry_run:
            self._preview_retention()
            return
        done = apply_retention(timezone.now())
        for kind, rows in done.rows.items():
            self.stdout.write(f"{kind.label}: {rows} deleted")
        for part in done.dropped:
            self.stdout.write(f"{part.title}: dropped, {humanised(part.bytes, 'bytes')}")
        if done.later:
            raise CommandError(f"some expired data remain: {done.later}; run the command again")

    def _preview_retention(self) -> None:
        preview = preview_retention(timezone.now())
        for expired in preview.expired:
            oldest = f", the oldest of {expired.oldest:%Y-%m-%d}" if expired.oldest else ""
            size = humanised(expired.bytes, "bytes")
            self.stdout.write(f"{expired.suite}: {expired.rows} {expired.kind.label}, about {size}{oldest}")
        for part in preview.dropped:
            self.stdout.write(f"{part.title}: would be dropped, {humanised(part.bytes, 'bytes')}")
        if not preview.expired:
            self.stdout.write("No data exceed their retention.")

    def _reparse(self, *, series: list[str], since: str | None, dry_run: bool, **_: Any) -> None:
        done = ReparseCounts()
        start = LONG_AGO if since is None else parse_time("--since", since, example="2026-03-01T00:00Z")
        for done in reparse(start, series=_series_keys(series), dry_run=dry_run):
            self.stderr.write(f"{done.read} reports")
        changes = f"{done.changed} changed, {done.added} added, {done.removed} removed"
        parsed = "would be parsed" if dry_run else "parsed"
        self.stdout.write(f"{done.read} reports {parsed} again; samples: {changes}")
        if done.frozen:
            self.stdout.write(f"{done.frozen} reports skipped: retention has deleted their samples")
        if done.unreadable:
            raise CommandError(f"{done.unreadable} reports could not be parsed; see the log")


def _summary(manifest: Manifest) -> str:
    rows, samples = manifest.rows, sum(manifest.samples.values())
    return (
        f"{rows['monitor_run']} runs, {rows['monitor_rawreport']} reports and {samples} samples as of "
        f"{manifest.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    )


def _series_keys(names: list[str]) -> list[int] | None:
    """Return the primary keys of the series *names*; None without names.

    Raises:
        CommandError: a name is unknown.
    """
    keys = dict(Series.objects.filter(name__in=names).values_list("name", "pk"))
    unknown = sorted(set(names) - keys.keys())
    if unknown:
        raise CommandError(f"--series: there is no series {unknown[0]!r}")
    return sorted(keys.values()) if names else None
