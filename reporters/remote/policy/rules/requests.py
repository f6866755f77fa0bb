"""How many runs that users request, and retries, may start within an hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reporters.config import Assignment
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import NumberShape, ObjectShape


class Rule:
    is_lasting = False
    shape = ObjectShape(
        {
            "per_hour": NumberShape(
                0, "no requested run starts after this many within an hour", is_integer=True
            )
        },
        required=("per_hour",),
        description="runs outside of the schedule: those that users request, and retries",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._most = int(values["per_hour"])

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # any run
        started = situation.requested_runs
        if started is None or started < self._most:
            return ""
        return f"at most {self._most} requested runs an hour, {started} have started"

    def summary(self) -> Mapping[str, Any]:
        return {"per_hour": self._most}
