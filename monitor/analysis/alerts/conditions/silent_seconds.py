"""Open if no report of the series has arrived for a number of seconds after a run was due."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.analysis.alerts.conditions.base import REPORTED_HERE, ConditionInput, Verdict, timestamp
from monitor.core.units import coarse_seconds
from monitor.runs.ledger.attribution import outcome_label


class Condition:
    label = "No report"
    description = "The alert is open when a run was due and no report has arrived for this long since."
    unit = "seconds"
    least, most = 60, 365 * 86_400
    runs_needed = 1

    def __init__(self, threshold: int) -> None:
        self._longest = timedelta(seconds=threshold)

    def judge(self, runs: ConditionInput, now: datetime) -> Verdict:
        due_at, unreported = runs.unreported_due_at, runs.unreported
        opens_at = due_at + self._longest if due_at else None
        if unreported is None or opens_at is None or now < opens_at:
            return _not_silent(runs, opens_at)
        length = coarse_seconds(self._longest.total_seconds())
        text = f"no report for {length} after a run was due at {timestamp(unreported.slot)}"
        return Verdict(True, text, unreported.run, unreported.slot)


def _not_silent(runs: ConditionInput, opens_at: datetime | None) -> Verdict:
    latest = next((run for run in runs.newest if run.state in REPORTED_HERE), None)
    if latest is None:
        return Verdict(False, "no run is overdue", recheck_at=opens_at)
    text = f"reported again: {outcome_label(latest.state)} at {timestamp(latest.slot)}"
    return Verdict(False, text, latest.run, recheck_at=opens_at)
