"""Published times of MADbench by writers and readers, and the same in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.storage import profiles
from monitor.testbed.storage.madbench_virtual import CALL_BYTES, Load, io_seconds
from monitor.testbed.storage.profile import KIB
from monitor.testbed.storage.virtual import VirtualStorage
from monitor.web.reports.published_storage import RAID_READERS, THROTTLING

_READ_AHEAD_BYTES = 512 * KIB  # AIX's default


@dataclass(frozen=True)
class PublishedTable:
    """*values* by (writers, readers): seconds, or shares of the time with the streams *relative_to*.

    *other_seconds* are outside of the phases of input and output. *load* is a part of the published one: its
    time counts *times*.
    """

    values: Mapping[tuple[int, int], float]
    other_seconds: float
    load: Load
    times: float
    relative_to: tuple[int, int] | None = None


def _part(bytes_: float, call_bytes: int = CALL_BYTES) -> int:
    return round(bytes_ / call_bytes) * call_bytes


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
    RAID_READERS.profile: PublishedTable(
        {(RAID_READERS.tasks, readers): 1.0 + slower for readers, slower in RAID_READERS.slower.items()},
        0.0,
        # One call at a time would keep one of the six disks busy.
        Load(16, _part(46.5e6, _READ_AHEAD_BYTES), 1, read_bytes=_READ_AHEAD_BYTES, reads_in_flight=2),
        16.0,
        relative_to=(RAID_READERS.tasks, RAID_READERS.best),
    ),
}


def virtual_values(profile: str, library: Path) -> dict[tuple[int, int], float]:
    """Return the values of the table of *profile*, in virtual time."""
    table = TABLES[profile]
    found = {}
    for writers, readers in table.values:
        with VirtualStorage(library, profiles.load(profile)) as storage:
            taken = io_seconds(storage, table.load, writers=writers, readers=readers)
        found[writers, readers] = table.other_seconds + table.times * taken
    unit = found[table.relative_to] if table.relative_to else 1.0
    return {streams: value / unit for streams, value in found.items()}
