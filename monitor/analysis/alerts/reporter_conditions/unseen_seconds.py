"""Open while the reporter has not exchanged with the server for a number of seconds."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.analysis.alerts.conditions.base import timestamp
from monitor.analysis.alerts.reporter_conditions.base import ReporterInput, ReporterVerdict
from monitor.core.units import coarse_seconds


class Condition:
    label = "No exchange"
    description = "The alert is open while a reporter has not exchanged with the server for this long."
    unit = "seconds"
    least, most = 60, 365 * 86_400
    default = 15 * 60
    title = "Reporter silent"

    def __init__(self, threshold: int) -> None:
        self._longest = timedelta(seconds=threshold)

    def judge(self, reporter: ReporterInput, now: datetime) -> ReporterVerdict:
        since = max(filter(None, (reporter.seen_at, reporter.enrolled_at)))
        if now - since < self._longest:
            return ReporterVerdict(False, f"exchanged again at {timestamp(since)}")
        length = coarse_seconds(self._longest.total_seconds())
        last = f"last at {timestamp(reporter.seen_at)}" if reporter.seen_at else "never since its enrolment"
        return ReporterVerdict(True, f"no exchange for {length}, {last}", since)
