"""Cached I/O: are the data too large for the page cache to answer?"""

from __future__ import annotations

from probes.base import NoData
from probes.grid import Grid

_MEMORY = "pages=$(getconf _PHYS_PAGES) && echo $((pages * $(getconf PAGE_SIZE)))"


def check_twice_the_memory(grid: Grid, resource: str, data_bytes: int) -> None:
    """Raise NoData unless *data_bytes* are at least twice the memory of *resource*."""
    completed = grid.shell(resource).run(["sh", "-c", _MEMORY], timeout_seconds=60.0)
    text = completed.stdout.strip()
    memory_bytes = int(text) if completed.returncode == 0 and text.isdecimal() else 0
    if not memory_bytes:
        raise NoData(
            f"cached I/O at {resource} needs data of at least twice the memory, whose size is unknown"
        )
    if data_bytes < 2 * memory_bytes:
        raise NoData(
            f"cached I/O at {resource} needs data of at least twice the memory, {2 * memory_bytes} bytes: "
            f"the page cache would answer; file_bytes is {data_bytes}"
        )
