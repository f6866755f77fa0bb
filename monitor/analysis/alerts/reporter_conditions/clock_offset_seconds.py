"""Open while the reporter's clock is certainly off by more than a number of seconds."""

from __future__ import annotations

from datetime import datetime

from monitor.analysis.alerts.reporter_conditions.base import ReporterInput, ReporterVerdict
from monitor.core.units import seconds


class Condition:
    label = "Clock offset"
    description = "The alert is open while a reporter's clock is off by more than this, beyond its bound."
    unit = "seconds"
    least, most = 1, 365 * 86_400
    default = 30
    title = "Reporter's clock is off"

    def __init__(self, threshold: int) -> None:
        self._most_seconds = threshold

    def judge(self, reporter: ReporterInput, now: datetime) -> ReporterVerdict:
        offset, bound = reporter.clock_offset_seconds, reporter.clock_bound_seconds or 0.0
        if offset is None:
            return ReporterVerdict(False, "the offset of the clock is not known")
        direction = "behind" if offset > 0 else "ahead"
        text = f"the clock is {seconds(abs(offset))} {direction} (within {seconds(bound)})"
        if abs(offset) - bound <= self._most_seconds:
            return ReporterVerdict(False, text)
        return ReporterVerdict(True, text, min(reporter.seen_at or now, now))
