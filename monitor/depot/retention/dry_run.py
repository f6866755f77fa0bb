"""Preview what retention would delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.depot.retention import expiry_sql
from monitor.models import Suite
from monitor.models.retention_cutoff import DataKind

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.depot.engines.engine import Partition


@dataclass
class ExpiredData:
    """The expired rows of one kind of data of one suite.

    *bytes* is an estimate: the size of each partition times the expired share of its rows.
    """

    suite: str
    kind: DataKind
    rows: int = 0
    bytes: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class RetentionPreview:
    """What retention would delete: the *expired* data, and the *dropped* partitions, without kept rows."""

    expired: list[ExpiredData]
    dropped: list[Partition]


def preview_retention(now: datetime) -> RetentionPreview:
    """Return what ``apply_retention`` would delete at *now*. Reads every partition with expired rows."""
    suite_names = dict(Suite.objects.values_list("pk", "name"))
    expired: dict[tuple[str, DataKind], ExpiredData] = {}
    dropped = []
    for kind_name, all_kept_from in sorted(expiry_sql.kept_from(now).items()):
        kind = DataKind(kind_name)
        for partition in expiry_sql.partitions(kind):
            if partition.start >= all_kept_from:
                continue
            counts = expiry_sql.expiry_counts(kind, partition, now)
            total = sum(count.rows for count in counts)
            for count in counts:
                if count.suite is not None and count.expired:
                    key = (suite_names[count.suite], kind)
                    data = expired.setdefault(key, ExpiredData(*key))
                    data.rows += count.expired
                    data.bytes += partition.bytes * count.expired // total
                    if count.oldest is not None:
                        data.oldest = min(count.oldest, data.oldest or count.oldest)
            if partition.end <= all_kept_from and all(count.expired == count.rows for count in counts):
                dropped.append(partition)
    return RetentionPreview([expired[key] for key in sorted(expired)], dropped)
