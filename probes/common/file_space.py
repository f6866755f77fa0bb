"""The disk space that the files of a signature take while its calls are played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOVING = ("read", "write", "fread", "fwrite")
_WRITING = ("write", "fwrite", "allocate")


@dataclass
class _Writes:
    """What calls do to a range of files, evenly: *reach* is the highest end, *bytes* are of all files."""

    reach: int = 0
    bytes: int = 0
    end: int = 0  # of the last call, where the next one begins


class FileSpace:
    """The files of a signature, by number, and how far its calls fill them."""

    def __init__(self) -> None:
        self._initial: list[tuple[int, int]] = []  # end of a family, bytes of each file
        self._writes: dict[tuple[int, int], _Writes] = {}

    def add_family(self, end: int, initial_bytes: int) -> None:
        """Add the files up to *end*, which have *initial_bytes* each before the calls."""
        self._initial.append((end, initial_bytes))

    def add_calls(
        self, operation: str, files: tuple[int, int], number: int, size: int, highest: int | None
    ) -> None:
        """Add *number* calls on *files*, first and last. *highest* is their end; None: they follow others."""
        writes = self._writes.setdefault(files, _Writes())
        if operation == "open":
            writes.end = 0
        elif operation in _MOVING or operation == "allocate":
            each = -(-number // (files[1] - files[0] + 1))
            writes.end = writes.end + each * size if highest is None else highest
        if operation in _WRITING:
            writes.reach = max(writes.reach, writes.end)
            writes.bytes += number * size

    def needed_bytes(self) -> int:
        """Return the bytes of all files after the calls. Holes take no space."""
        needed, begin = 0.0, 0
        writes = [(first, last, part) for (first, last), part in self._writes.items() if part.bytes]
        ends = {end for first, last, _ in writes for end in (first, last + 1)}
        families = iter(self._initial)
        family_end, initial = 0, 0
        for end in sorted(ends.union(end for end, _ in self._initial)):
            while family_end < end:
                family_end, initial = next(families)
            parts = [
                (last - first + 1, part) for first, last, part in writes if first < end and begin <= last
            ]
            needed += (end - begin) * _filled(initial, parts)
            begin = end
        return round(needed)


def _filled(initial: int, writes: Sequence[tuple[int, _Writes]]) -> float:
    """Return the bytes of a file after *writes*, each of them on a number of files."""
    reach = max((part.reach for _, part in writes), default=0)
    return max(initial, min(reach, initial + sum(part.bytes / files for files, part in writes)))
