"""Describe the content of a backup, so that a restore can verify that it is complete."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from monitor.core.db import server_version
from monitor.core.db.timescale_extension import extension
from monitor.runs.ledger.audit import audit

VERSION = 1
FILE = "manifest.json"
AUDITED = timedelta(days=31)
_COUNT = "SELECT count(*) FROM {}"
_SAMPLES_BY_MONTH = """
SELECT to_char(time AT TIME ZONE 'UTC', 'YYYY-MM') AS month, count(*) FROM monitor_sample GROUP BY month
ORDER BY month
"""


class ManifestError(Exception):
    """A directory has no manifest that this version of gridcast reads; the message says what was found."""


@dataclass(frozen=True)
class Manifest:
    """The content of a backup in numbers.

    Attributes:
        schema: name of the last applied migration of gridcast.
        postgresql: version of the server as a number, 150018 for version 15.18.
        dumped_by: major version of pg_dump.
        timescaledb: version of TimescaleDB; None if the depot does not use it.
        rows: number of rows by table.
        samples: number of samples by month of their slots.
        ledger: number of findings of each kind in an audit of the last month.
        version: version of the manifest's format.
    """

    taken_at: datetime
    schema: str
    postgresql: int
    dumped_by: int
    timescaledb: str | None
    rows: dict[str, int]
    samples: dict[str, int]
    ledger: dict[str, int]
    version: int = field(default=VERSION)

    def differences(self, other: Manifest) -> list[str]:
        """Return a line for each count that is different in *other*; *self* is the expected manifest."""
        lines = []
        for part in ("rows", "samples", "ledger"):
            expected, actual = getattr(self, part), getattr(other, part)
            lines += [
                f"{part} of {name}: expected {expected.get(name, 0)}, got {actual.get(name, 0)}"
                for name in sorted(expected.keys() | actual.keys())
                if expected.get(name, 0) != actual.get(name, 0)
            ]
        return lines

    def text(self) -> str:
        return json.dumps({**asdict(self), "taken_at": self.taken_at.isoformat()}, indent=2) + "\n"


def describe(taken_at: datetime, *, dumped_by: int) -> Manifest:
    """Return the manifest of the depot as the current transaction sees it; *dumped_by* as in ``Manifest``."""
    return Manifest(
        taken_at=taken_at,
        schema=schema(),
        postgresql=server_version.version(),
        dumped_by=dumped_by,
        timescaledb=extension().installed,
        rows={table: _fetch(_COUNT.format(connection.ops.quote_name(table)))[0][0] for table in _tables()},
        samples=dict(_fetch(_SAMPLES_BY_MONTH)),
        ledger=_ledger_counts(taken_at),
    )


def read(directory: Path) -> Manifest:
    """Read the manifest of the backup in *directory*. Raises ManifestError if it is missing or unreadable."""
    try:
        document: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            raise ManifestError(
                f"{directory}: expected a backup of version {VERSION}, got version {document['version']!r}"
            )
        return Manifest(**{**document, "taken_at": datetime.fromisoformat(document["taken_at"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ManifestError(f"{directory} is no backup: cannot read its {FILE}: {error!r}") from error


def schema() -> str:
    """Return the name of the last migration of gridcast that was applied to the database."""
    applied = MigrationRecorder(connection).applied_migrations()
    return max((name for app, name in applied if app == "monitor"), default="")


def _tables() -> list[str]:
    tables = connection.introspection.django_table_names(only_existing=True, include_views=True)
    return sorted(table for table in tables if table.startswith("monitor_"))


def _ledger_counts(taken_at: datetime) -> dict[str, int]:
    audited = audit(taken_at - AUDITED, taken_at)
    findings = {"missing": audited.missing, "doubled": audited.doubled, "overdue": audited.overdue}
    return {"slots": audited.slots, **{name: len(runs) for name, runs in findings.items()}}


def _fetch(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
