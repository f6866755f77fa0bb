"""How many bytes runs have in scratch directories of the reporter's host."""

from __future__ import annotations

import os
from pathlib import Path

from reporters.config import Assignment

_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's block size


def scratch_used_bytes(assignment: Assignment) -> int:
    """Return the bytes that runs of this user have in scratch directories of *assignment* on this host."""
    roots = {
        Path(resource.scratch, f"gridcast-{os.geteuid()}")
        for resource in assignment.resources.values()
        if resource.shell.get("kind") == "local"
    }
    return sum(map(_bytes_below, roots))


def _bytes_below(directory: Path) -> int:
    """Return the bytes that are allocated below *directory*; links are not followed."""
    total = 0
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                if entry.is_dir(follow_symlinks=False):
                    total += _bytes_below(Path(entry.path))
    except OSError:  # the run that owns it has ended meanwhile
        return total
    return total
