"""What ``manage.py depot`` does to keep data: backup, restore, retain, reparse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from monitor.backup.create import BackupError, back_up
from monitor.backup.manifest import ManifestError, schema
from monitor.backup.pg_tools import DumpError
from monitor.backup.restore import RestoreError, create_database, restore
from monitor.db.timescale_extension import TimescaleUnavailable
from monitor.depot.retention.apply import apply_retention
from monitor.depot.retention.dry_run import preview_retention
from monitor.ingest.reparse import ReparseCounts, reparse
from monitor.models import Series
from monitor.units import humanised

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from monitor.backup.manifest import Manifest

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Keeping(BaseCommand):
    """The verbs, a method each."""

    def add_keeping(self, verbs: _SubParsersAction[Any]) -> None:
        backup = verbs.add_parser(
            "backup", help="write all of the depot to a new directory, while it is used"
        )
        backup.add_argument("target", type=Path, metavar="DIRECTORY")
        restoring = verbs.add_parser("restore", help="fill an empty database from a backup, and audit it")
        restoring.add_argument("source", type=Path, metavar="DIRECTORY")
        restoring.add_argument(
            "--create", action="store_true", help="make the database of DATABASE_URL first"
        )
        for one in (backup, restoring):
            one.add_argument("--jobs", type=int, default=1, help="how many programs work at once (1)")
        retaining = verbs.add_parser("retain", help="take away what is older than its suite keeps it")
        retaining.add_argument("--dry-run", action="store_true", help="say what would go, and take nothing")
        parsing = verbs.add_parser("reparse", help="read raw reports again that an older parser has read")
        parsing.add_argument("--series", nargs="+", default=[], metavar="NAME", help="these only")
        parsing.add_argument("--since", help="slots from then on only: 2026-03-01T00:00Z")
        parsing.add_argument(
            "--dry-run", action="store_true", help="say what would change, and change nothing"
        )

    def _backup(self, *, target: Path, jobs: int, **_: Any) -> None:
        try:
            made = back_up(target.absolute(), timezone.now(), jobs=max(jobs, 1))
        except (BackupError, DumpError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{target}: {_told(made)}")

    def _restore(self, *, source: Path, jobs: int, create: bool, **_: Any) -> None:
        try:
            if create:
                create_database()
            made = restore(source.absolute(), jobs=max(jobs, 1))
        except (ManifestError, DumpError, RestoreError, TimescaleUnavailable) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{_told(made)}: all of it is there, and the ledger says what it said.")
        if schema() != made.schema:
            self.stdout.write("The backup is of an older version: run manage.py migrate.")

    def _retain(self, *, dry_run: bool, **_: Any) -> None:
        if dry_run:
            self._foretell()
            return
        done = apply_retention(timezone.now())
        for kind, rows in done.rows.items():
            self.stdout.write(f"{kind.label}: {rows} taken away")
        for part in done.dropped:
            self.stdout.write(f"{part.title}: dropped, {humanised(part.bytes, 'bytes')}")
        if done.later:
            raise CommandError(f"not all of it: {done.later}; call it again")

    def _foretell(self) -> None:
        found = preview_retention(timezone.now())
        for one in found.expired:
            oldest = f", the oldest of {one.oldest:%Y-%m-%d}" if one.oldest else ""
            size = humanised(one.bytes, "bytes")
            self.stdout.write(f"{one.suite}: {one.rows} {one.kind.label}, about {size}{oldest}")
        for part in found.dropped:
            self.stdout.write(f"{part.title}: would be dropped whole, {humanised(part.bytes, 'bytes')}")
        if not found.expired:
            self.stdout.write("Nothing is older than it is kept.")

    def _reparse(self, *, series: list[str], since: str | None, dry_run: bool, **_: Any) -> None:
        done = ReparseCounts()
        for done in reparse(_time(since), series=_keys(series), dry_run=dry_run):
            self.stderr.write(f"{done.read} reports")
        changes = f"{done.changed} changed, {done.added} added, {done.removed} removed"
        was = "would be" if dry_run else "were"
        self.stdout.write(f"{done.read} reports {was} read again, and of their samples {changes}")
        if done.frozen:
            self.stdout.write(f"{done.frozen} reports are of samples that are gone for their age")
        if done.unreadable:
            raise CommandError(f"{done.unreadable} reports could not be read; the log says why")


def _told(made: Manifest) -> str:
    rows, samples = made.rows, sum(made.samples.values())
    return (
        f"{rows['monitor_run']} runs, {rows['monitor_rawreport']} reports and {samples} samples as of "
        f"{made.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    )


def _keys(names: list[str]) -> list[int] | None:
    """Of series by name; None of none: all. Raises CommandError."""
    found = dict(Series.objects.filter(name__in=names).values_list("name", "pk"))
    unknown = sorted(set(names) - found.keys())
    if unknown:
        raise CommandError(f"--series: there is no series {unknown[0]!r}")
    return sorted(found.values()) if names else None


def _time(text: str | None) -> datetime:
    """Without an offset it is UTC. Raises CommandError."""
    if text is None:
        return LONG_AGO
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"--since: expected a time such as 2026-03-01T00:00Z, got {text!r}")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
