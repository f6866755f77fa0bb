"""Open while the oldest record in the spool of the reporter is older than a number of seconds.

The age is that at the last exchange: while a reporter is silent, nothing is known of its spool.
"""

from __future__ import annotations

from datetime import datetime

from monitor.analysis.alerts.reporter_conditions.base import ReporterInput, ReporterVerdict
from monitor.core.units import coarse_seconds


class Condition:
    label = "Lag of the spool"
    description = "The alert is open while the oldest record in a reporter's spool is at least this old."
    unit = "seconds"
    least, most = 60, 365 * 86_400
    default = 10 * 60
    title = "Reporter lags"

    def __init__(self, threshold: int) -> None:
        self._longest_seconds = threshold

    def judge(self, reporter: ReporterInput, now: datetime) -> ReporterVerdict:
        if reporter.seen_at is None or reporter.oldest_at is None:
            return ReporterVerdict(False, "the spool is empty")
        lag_seconds = (min(reporter.seen_at, now) - reporter.oldest_at).total_seconds()
        if lag_seconds < self._longest_seconds:
            return ReporterVerdict(False, f"the lag is {coarse_seconds(max(lag_seconds, 0.0))}")
        text = f"the oldest record in the spool is {coarse_seconds(lag_seconds)} old"
        return ReporterVerdict(True, text, reporter.oldest_at)
