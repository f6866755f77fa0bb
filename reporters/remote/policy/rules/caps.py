"""Upper bounds of what runs use: runs at the same time, CPU and bytes of a day, scratch space, load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reporters.config import Assignment
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import NumberShape, ObjectShape
from reporters.remote.policy.usage import DayUsage
from reporters.usage import format_bytes

_HOUR_SECONDS = 3600.0


class Rule:
    is_lasting = False
    shape = ObjectShape(
        {
            "concurrent_runs": NumberShape(1, "the most runs at the same time", is_integer=True),
            "cpu_hours_per_day": NumberShape(
                0, "no run starts on a day whose runs have used this much CPU time, jobs included"
            ),
            "bytes_per_day": NumberShape(
                0, "no run starts on a day whose runs have copied this many bytes", is_integer=True
            ),
            "scratch_bytes": NumberShape(
                0, "the most bytes that all runs together have in scratch directories", is_integer=True
            ),
            "load1": NumberShape(
                0, "no run starts at a one-minute load average above this, of this host or of a resource"
            ),
        },
        description="upper bounds of what runs use",
    )

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = values

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # any run
        caps = self.values
        if situation.running_runs >= caps.get("concurrent_runs", float("inf")):
            return f"at most {caps['concurrent_runs']} concurrent runs, {situation.running_runs} are running"
        if situation.scratch_used_bytes >= caps.get("scratch_bytes", float("inf")):
            used, most = format_bytes(situation.scratch_used_bytes), format_bytes(int(caps["scratch_bytes"]))
            return f"at most {most} of scratch, {used} are used"
        if situation.load1 is not None and situation.load1 > caps.get("load1", float("inf")):
            return f"load {situation.load1:g} at the reporter, at most {caps['load1']:g} allowed"
        return self._refusal_of_day(situation.used)

    def _refusal_of_day(self, used: DayUsage | None) -> str:
        caps = self.values
        if used is None:
            has_caps = not caps.keys().isdisjoint(("cpu_hours_per_day", "bytes_per_day"))
            return "what the runs of this day used is unknown" if has_caps else ""
        cpu_hours = used.cpu_seconds / _HOUR_SECONDS
        if cpu_hours >= caps.get("cpu_hours_per_day", float("inf")):
            return f"at most {caps['cpu_hours_per_day']:g} CPU hours a day, {cpu_hours:.2f} are used"
        if used.copied_bytes >= caps.get("bytes_per_day", float("inf")):
            copied, most = format_bytes(used.copied_bytes), format_bytes(int(caps["bytes_per_day"]))
            return f"at most {most} a day, {copied} are copied"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return dict(self.values)
