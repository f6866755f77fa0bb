"""Episodes: consecutive failures of a series by one cause; times between failures and to repair. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_NEVER = datetime.min.replace(tzinfo=UTC)


class JudgedRun(NamedTuple):
    """A run that passed (*cause* is None) or failed; runs that prove neither are left out by the caller."""

    slot: datetime
    cause: str | None


@dataclass(frozen=True)
class FailureEpisode:
    """Consecutive failed runs with one cause.

    Attributes:
        cause: the name of their signature.
        began_at, latest_at: the slots of the first and of the last of these runs.
        ended_at: the slot of the next run, which passed or failed by another cause; None while it lasts.
        runs: how many runs failed.
        is_repaired: whether the next run passed.
    """

    cause: str
    began_at: datetime
    latest_at: datetime
    ended_at: datetime | None
    runs: int
    is_repaired: bool


@dataclass(frozen=True)
class RepairTimes:
    """Means over the outages of a series; an outage lasts from a failed run to the next one that passed.

    Attributes:
        outages: how many began.
        between: the mean time from the end of an outage, or the first run, to the next outage; None
            without an outage that followed a passed run.
        to_repair: the mean length of the outages that have ended; None if none has.
    """

    outages: int
    between: timedelta | None
    to_repair: timedelta | None


def episodes(runs: Iterable[JudgedRun]) -> list[FailureEpisode]:
    """Return the episodes of the *runs* of one series, which are in the order of their slots."""
    ended: list[FailureEpisode] = []
    cause: str | None = None
    began_at = latest_at = _NEVER
    count = 0
    for run in runs:
        if run.cause == cause and cause is not None:
            latest_at, count = run.slot, count + 1
            continue
        if cause is not None:
            ended.append(FailureEpisode(cause, began_at, latest_at, run.slot, count, run.cause is None))
        cause, began_at, latest_at, count = run.cause, run.slot, run.slot, 1
    if cause is not None:
        ended.append(FailureEpisode(cause, began_at, latest_at, None, count, is_repaired=False))
    return ended


def repair_times(runs: Sequence[JudgedRun]) -> RepairTimes:
    """Return the means of the *runs* of one series, which are in the order of their slots.

    Outages and the times between them are measured from slot to slot: a series that runs once an hour knows
    them to an hour.
    """
    outages = 0
    between: list[timedelta] = []
    to_repair: list[timedelta] = []
    good_since: datetime | None = None
    broken_since: datetime | None = None
    for run in runs:
        if run.cause is None:
            if broken_since is not None:
                to_repair.append(run.slot - broken_since)
                broken_since, good_since = None, run.slot
            good_since = good_since or run.slot
        elif broken_since is None:
            outages, broken_since = outages + 1, run.slot
            if good_since is not None:
                between.append(run.slot - good_since)
                good_since = None
    return RepairTimes(outages, _mean(between), _mean(to_repair))


def _mean(durations: Sequence[timedelta]) -> timedelta | None:
    return sum(durations, timedelta()) / len(durations) if durations else None
