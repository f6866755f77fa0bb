"""Copies of records that will not be delivered, kept for the operator with the reason."""

from __future__ import annotations

import os
from pathlib import Path

from reporters.spool.files import write_whole

MOST_FILES = 2000  # two for each record; the first ones say the most about a fault that goes on
REASON = ".reason"


def set_aside(directory: Path, name: str, data: bytes, reason: str) -> None:
    """Write *data* to the file *name* in *directory*, and *reason* beside it.

    A directory with ``MOST_FILES`` takes no more.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    if len(os.listdir(directory)) < MOST_FILES:  # noqa: PTH208  # names suffice
        write_whole(directory / name, data, is_durable=False)
        write_whole(directory / (name + REASON), f"{reason}\n".encode(errors="replace"), is_durable=False)
