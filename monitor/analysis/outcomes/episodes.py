"""Episodes: consecutive failures of a series by one cause, and their mean length. Pure."""

from __future__ import annotations

from collections.abc import Iterable
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


def mean_to_repair(episodes_: Iterable[FailureEpisode]) -> timedelta | None:
    """Return the mean length of the episodes that a passed run ended; None if there is none."""
    lengths = [each.ended_at - each.began_at for each in episodes_ if each.is_repaired and each.ended_at]
    return sum(lengths, timedelta()) / len(lengths) if lengths else None
