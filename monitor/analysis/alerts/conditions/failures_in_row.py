"""Open if none of the newest runs passed: each of them failed, broke, timed out, was missed or lost."""

from __future__ import annotations

from datetime import datetime

from monitor.analysis.alerts.conditions.base import ConditionInput, Verdict, timestamp
from monitor.models.run import State


class Condition:
    label = "Consecutive failures"
    description = "The alert is open while this many consecutive runs did not pass."
    unit = "runs"
    least, most = 1, 100

    def __init__(self, threshold: int) -> None:
        self.runs_needed = threshold

    def judge(self, runs: ConditionInput, now: datetime) -> Verdict:
        newest = runs.newest[: self.runs_needed]
        passed = next((run for run in newest if run.state == State.PASSED), None)
        if passed is not None:
            return Verdict(False, f"passed at {timestamp(passed.slot)}", passed.run)
        if len(newest) < self.runs_needed:
            return Verdict(False, f"fewer than {self.runs_needed} consecutive failures")
        latest, first = newest[0], newest[-1]
        if self.runs_needed == 1:
            return Verdict(True, f"a run did not pass: {latest.text}", latest.run, first.slot)
        text = f"{self.runs_needed} consecutive failures; latest: {latest.text}"
        return Verdict(True, text, latest.run, first.slot)
