"""What would be taken away, were it done now: for people, before it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.depot.engines import engine
from monitor.depot.retention import expiry_sql
from monitor.models import Suite
from monitor.models.retention_cutoff import DataKind

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.depot.engines.engine import Part
    from monitor.depot.retention.expiry_sql import Going


@dataclass
class Expired:
    """What of one kind of a suite's data is too old. *bytes* are about: its share of the parts it is in."""

    suite: str
    kind: DataKind
    rows: int = 0
    bytes: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class RetentionPreview:
    """What is too old, and which parts nobody needs anything of: they would be dropped whole."""

    expired: list[Expired]
    dropped: list[Part]


def preview_retention(now: datetime) -> RetentionPreview:
    """What ``apply_retention`` would take away at *now*. Reads all that is old enough: to be waited for."""
    names = dict(Suite.objects.values_list("pk", "name"))
    found: dict[tuple[str, DataKind], Expired] = {}
    dropped = []
    for kind, last in sorted(expiry_sql.kept_from(now).items()):
        for part in _parts(DataKind(kind)):
            if part.start >= last:
                continue
            there = expiry_sql.going(DataKind(kind), part, now)
            for one in there:
                if one.suite is not None and one.going:
                    key = (names[one.suite], DataKind(kind))
                    _add(found.setdefault(key, Expired(*key)), one, _bytes(part, one, there))
            if part.end <= last and all(one.going == one.rows for one in there):
                dropped.append(part)
    return RetentionPreview([found[key] for key in sorted(found)], dropped)


def _add(expired: Expired, one: Going, size_bytes: int) -> None:
    expired.rows += one.going
    expired.bytes += size_bytes
    if one.oldest is not None:
        expired.oldest = min(one.oldest, expired.oldest or one.oldest)


def _bytes(part: Part, one: Going, there: list[Going]) -> int:
    """Its share of *part*."""
    return part.bytes * one.going // sum(each.rows for each in there)


def _parts(kind: DataKind) -> list[Part]:
    table = expiry_sql.TABLES[kind]
    return engine().parts(table.name) if table.is_parted else [expiry_sql.whole(kind)]
