"""The share of failed runs by weekday and hour of the day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from monitor.analysis.outcomes.blocks import Numbers
    from monitor.analysis.outcomes.read import RunOutcomes

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOUR = 3_600_000_000  # microseconds


@dataclass(frozen=True)
class HourCount:
    """The *runs* in an hour of a weekday, and how many of them *failed*."""

    runs: int = 0
    failed: int = 0

    @property
    def share(self) -> float | None:
        """The share that failed; None without runs."""
        return self.failed / self.runs if self.runs else None


def clock_of(zone: tzinfo, *times: datetime) -> tzinfo:
    """Return *zone* if it differs from UTC by whole hours at *times*, else UTC: runs are counted by hour."""
    offsets = [time.astimezone(zone).utcoffset() or timedelta() for time in times]
    return UTC if any(offset % timedelta(hours=1) for offset in offsets) else zone


def count_by_hour(outcomes: RunOutcomes, zone: tzinfo = UTC) -> Sequence[Sequence[HourCount]]:
    """Return the counts by weekday, Monday first, and hour of the slots in *zone* (see ``clock_of``)."""
    passed = outcomes.passed_by_hour
    failed_hours, failed = np.unique(outcomes.failed_unnamed["slot"] // _HOUR * _HOUR, return_counts=True)
    in_week = _hours_of_week(np.concatenate([passed.hours, failed_hours]), zone)
    both = np.bincount(in_week, np.concatenate([passed.runs, failed]), minlength=168).astype(np.int64)
    only_failed = np.bincount(in_week[len(passed.hours) :], failed, minlength=168).astype(np.int64)
    counts = [HourCount(*pair) for pair in zip(both.tolist(), only_failed.tolist(), strict=True)]
    return [counts[day : day + 24] for day in range(0, 168, 24)]


def _hours_of_week(hours: Numbers, zone: tzinfo) -> Numbers:
    """Return the number, 0 to 167, of each hour in a week of *zone*."""
    different, at = np.unique(hours, return_inverse=True)
    local = [moment(hour).astimezone(zone) for hour in different.tolist()]
    return np.array([24 * time.weekday() + time.hour for time in local], np.int64)[at]
