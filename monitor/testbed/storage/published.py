"""Published seconds of MADbench by writers and readers, and the same in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from monitor.reports.published_storage import THROTTLING
from monitor.testbed.storage import profiles
from monitor.testbed.storage.madbench_virtual import CALL_BYTES, Load, io_seconds
from monitor.testbed.storage.virtual import VirtualStorage


@dataclass(frozen=True)
class PublishedTable:
    """*seconds* by (writers, readers). *other_seconds* are outside of the phases of input and output.

    *load* is a part of the published one: its time counts *times*.
    """

    seconds: Mapping[tuple[int, int], float]
    other_seconds: float
    load: Load
    times: float


def _part(bytes_: float) -> int:
    return round(bytes_ / CALL_BYTES) * CALL_BYTES


_SECONDS = {table.profile: table.seconds for table in THROTTLING}
TABLES: Mapping[str, PublishedTable] = {
    "xeon-eide": PublishedTable(
        _SECONDS["xeon-eide"], 47.0, Load(tasks=4, part_bytes=_part(18e6), rounds=1), 16.0
    ),
    "p690-scsi": PublishedTable(
        _SECONDS["p690-scsi"], 43.0, Load(tasks=16, part_bytes=_part(12.5e6), rounds=1), 16.0
    ),
    "beowulf-raid5": PublishedTable(
        _SECONDS["beowulf-raid5"], 460.0, Load(tasks=16, part_bytes=_part(291e6 / 24), rounds=1), 16.0 * 24
    ),
}


def virtual_seconds(profile: str, library: Path) -> dict[tuple[int, int], float]:
    """Return the seconds of each row of the table of *profile*, in virtual time."""
    table = TABLES[profile]
    found = {}
    for writers, readers in table.seconds:
        with VirtualStorage(library, profiles.load(profile)) as storage:
            taken = io_seconds(storage, table.load, writers=writers, readers=readers)
        found[writers, readers] = table.other_seconds + table.times * taken
    return found
