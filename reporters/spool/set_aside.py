"""Copies of records that will not be delivered, kept for the operator with the reason."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reporters.spool.files import write_whole

REFUSED, DAMAGED = "refused", "damaged"  # directories of a spool
MOST_FILES = 2000  # two for each record; the first ones say the most about a fault that goes on
REASON = ".reason"
NOT_KEPT = "not-kept"  # the file with the number of records that found no room


@dataclass(frozen=True)
class AsideCount:
    kept: int
    not_kept: int


def set_aside(directory: Path, name: str, data: bytes, reason: str) -> bool:
    """Write *data* to the file *name* in *directory*, and *reason* beside it; return whether there is room.

    A directory with ``MOST_FILES`` takes no more, and counts what it does not take.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    if len(os.listdir(directory)) >= MOST_FILES:  # noqa: PTH208  # names suffice
        number = count_aside(directory).not_kept + 1
        write_whole(directory / NOT_KEPT, f"{number}\n".encode(), is_durable=False)
        return False
    write_whole(directory / name, data, is_durable=False)
    write_whole(directory / (name + REASON), f"{reason}\n".encode(errors="replace"), is_durable=False)
    return True


def count_aside(directory: Path) -> AsideCount:
    """Return how many records are in *directory*, and how many found no room there.

    Raises:
        OSError: *directory* cannot be read.
    """
    try:
        names = os.listdir(directory)  # noqa: PTH208  # names suffice
    except FileNotFoundError:
        return AsideCount(0, 0)
    kept = sum(name.endswith(REASON) for name in names)
    number = (directory / NOT_KEPT).read_text(errors="replace").strip() if NOT_KEPT in names else ""
    return AsideCount(kept, int(number) if number.isdecimal() else 0)
