"""Pair the runs of an application with the replays that are nearest in time: they met the same conditions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecasting.elsewhere.runs import IoRun

DAY_SECONDS = 86_400.0
FRESH_GAPS = 10  # times the mean time between runs


@dataclass(frozen=True)
class RunPair:
    """A run of an application, and the replay on the same system that moves as many bytes."""

    application: IoRun
    replay: IoRun


def run_pairs(applications: Sequence[IoRun], replays: Sequence[IoRun]) -> list[RunPair]:
    """Return each run of *applications* with its nearest replay on the same system, as if of the same bytes.

    Both are in order of their starts. Runs farther from any replay than a day and than the mean time between
    replays are left out, and so are runs that took no time. If two replays are equally near, the earlier one
    counts.
    """
    timed = [run for run in replays if run.seconds > 0.0]
    limit = max(DAY_SECONDS, _mean_gap(timed))
    found = []
    for run in applications:
        replay = nearest(timed, run.started_at_seconds)
        if not replay or abs(replay.started_at_seconds - run.started_at_seconds) > limit:
            continue
        if run.seconds > 0.0:
            found.append(RunPair(run, replay.moving(run)))
    return found


def nearest(runs: Sequence[IoRun], seconds: float) -> IoRun | None:
    """Return the run of *runs*, which are in order of their starts, that started nearest to *seconds*."""
    place = bisect_left(runs, seconds, key=lambda run: run.started_at_seconds)
    around = runs[max(place - 1, 0) : place + 1]
    return min(around, key=lambda run: abs(run.started_at_seconds - seconds), default=None)


def fresh_until(runs: Sequence[IoRun]) -> float:
    """Return until when the newest of *runs* counts as fresh, as seconds: ten mean gaps, at least a day."""
    return runs[-1].started_at_seconds + max(DAY_SECONDS, FRESH_GAPS * _mean_gap(runs))


def _mean_gap(runs: Sequence[IoRun]) -> float:
    if len(runs) < 2:
        return 0.0
    return (runs[-1].started_at_seconds - runs[0].started_at_seconds) / (len(runs) - 1)
