"""Cached I/O: are the data too large for the page cache to answer?"""

from __future__ import annotations

from probes.base import NoData
from probes.grid import Grid

_MEMORY = "echo $(($(getconf _PHYS_PAGES) * $(getconf PAGE_SIZE)))"


def check_twice_the_memory(grid: Grid, resource: str, data_bytes: int) -> None:
    """Raise NoData unless *data_bytes* are at least twice the memory of *resource*."""
    text = grid.shell(resource).check(
        ["sh", "-c", _MEMORY], timeout_seconds=60.0, doing="ask for the size of the memory"
    )
    memory_bytes = int(text) if text.strip().isdecimal() else 0
    if not memory_bytes:
        raise NoData(
            f"cached I/O at {resource} needs data of at least twice the memory, whose size is unknown"
        )
    if data_bytes < 2 * memory_bytes:
        raise NoData(
            f"cached I/O at {resource} needs data of at least twice the memory, {2 * memory_bytes} bytes: "
            f"the page cache would answer; file_bytes is {data_bytes}"
        )
