"""Runs with known times."""

from __future__ import annotations

from collections.abc import Sequence

from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns

DAY = 86_400.0


def runs(
    *days: tuple[float, float], moved: tuple[float | None, float | None] = (None, None)
) -> Sequence[IoRun]:
    """Return a run a day: the seconds of its reads and writes, and the bytes that both moved."""
    return [
        IoRun(day * DAY, {"read": IoTime(read, moved[0]), "write": IoTime(write, moved[1])})
        for day, (read, write) in enumerate(days)
    ]


def system(name: str, applications: Sequence[IoRun], replays: Sequence[IoRun]) -> SystemRuns:
    return SystemRuns(name, applications, replays)
