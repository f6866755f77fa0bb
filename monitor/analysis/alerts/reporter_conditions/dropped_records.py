"""Open while the reporter has reported a number of dropped records within a day."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.analysis.alerts.reporter_conditions.base import ReporterInput, ReporterVerdict

WINDOW = timedelta(hours=24)


class Condition:
    label = "Dropped records, 24 h"
    description = "The alert is open while a reporter dropped this many records within the last 24 hours."
    unit = "records"
    least, most = 1, 1_000_000_000
    default = 1
    title = "Reporter dropped records"

    def __init__(self, threshold: int) -> None:
        self._fewest = threshold

    def judge(self, reporter: ReporterInput, now: datetime) -> ReporterVerdict:
        drops = [drop for drop in reporter.drops if now - WINDOW < drop.received_at <= now]
        records = sum(drop.records for drop in drops)
        if records < self._fewest:
            return ReporterVerdict(False, f"{records:,} records dropped within 24 h")
        noun = "record" if records == 1 else "records"
        text = f"{records:,} {noun} dropped from the spool within 24 h; they never reached the depot"
        return ReporterVerdict(True, text, drops[0].received_at)
