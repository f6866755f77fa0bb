"""How full a file system is: many get slower as they fill."""

from __future__ import annotations

from probes.base import Measurement
from probes.grid import Grid


def scratch_fullness(grid: Grid, resource: str) -> list[Measurement]:
    """Return the used share of the file system of the scratch directory; nothing where ``df`` cannot tell."""
    argv = ["df", "-Pk", grid.scratch(resource)]
    used = parse_df(grid.shell(resource).run(argv, timeout_seconds=60.0).stdout)
    return [] if used is None else [Measurement("scratch.full", used, "ratio")]


def parse_df(text: str) -> float | None:
    """Return used / (used + available) in the output of ``df -Pk`` for one path; None if there is none."""
    words = text.splitlines()[-1].split() if text.strip() else []
    numbers = [word for word in words[1:4] if word.isdecimal()]
    if len(numbers) < 3 or int(numbers[1]) + int(numbers[2]) == 0:
        return None
    return int(numbers[1]) / (int(numbers[1]) + int(numbers[2]))
