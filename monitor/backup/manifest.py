"""What a backup holds, told beside it: what has to be there again when it has been restored."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from monitor.db import server_version
from monitor.db.timescale_extension import extension
from monitor.ledger.audit import audit

VERSION = 1
FILE = "manifest.json"
AUDITED = timedelta(days=31)
_COUNT = "SELECT count(*) FROM {}"
_BY_MONTH = """
SELECT to_char(time AT TIME ZONE 'UTC', 'YYYY-MM') AS month, count(*) FROM monitor_sample GROUP BY month
ORDER BY month
"""


class ManifestError(Exception):
    """There is no backup, or none that can be read here; says what was found."""


@dataclass(frozen=True)
class Manifest:
    """*rows* by table, samples by month of their slots; *ledger*: what an audit of the last month found."""

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
        """What is not as in *other*, a line each."""
        found = []
        for what in ("rows", "samples", "ledger"):
            mine, its = getattr(self, what), getattr(other, what)
            found += [
                f"{what} of {name}: expected {mine.get(name, 0)}, got {its.get(name, 0)}"
                for name in sorted(mine.keys() | its.keys())
                if mine.get(name, 0) != its.get(name, 0)
            ]
        return found

    def text(self) -> str:
        return json.dumps({**asdict(self), "taken_at": self.taken_at.isoformat()}, indent=2) + "\n"


def manifest(taken_at: datetime, *, dumped_by: int) -> Manifest:
    """Of the depot as this transaction sees it."""
    return Manifest(
        taken_at=taken_at,
        schema=schema(),
        postgresql=server_version.version(),
        dumped_by=dumped_by,
        timescaledb=extension().installed,
        rows={table: _ask(_COUNT.format(connection.ops.quote_name(table)))[0][0] for table in _tables()},
        samples=dict(_ask(_BY_MONTH)),
        ledger=_ledger(taken_at),
    )


def read(directory: Path) -> Manifest:
    """That of the backup in *directory*. Raises ManifestError."""
    try:
        told: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
        if told["version"] != VERSION:
            raise ManifestError(
                f"{directory}: expected a backup of version {VERSION}, got version {told['version']!r}"
            )
        return Manifest(**{**told, "taken_at": datetime.fromisoformat(told["taken_at"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ManifestError(f"{directory} is no backup: cannot read its {FILE}: {error!r}") from error


def schema() -> str:
    """The last migration of ours that the database has."""
    applied = MigrationRecorder(connection).applied_migrations()
    return max((name for app, name in applied if app == "monitor"), default="")


def _tables() -> list[str]:
    tables = connection.introspection.django_table_names(only_existing=True, include_views=True)
    return sorted(table for table in tables if table.startswith("monitor_"))


def _ledger(taken_at: datetime) -> dict[str, int]:
    found = audit(taken_at - AUDITED, taken_at)
    lists = {"missing": found.missing, "doubled": found.doubled, "overdue": found.overdue}
    return {"slots": found.slots, **{name: len(findings) for name, findings in lists.items()}}


def _ask(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
