"""Hours in which no run starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reporters.config import Assignment
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ChoiceShape, ListShape, ObjectShape, TextShape

DAYS = {
    "mon": "Monday",
    "tue": "Tuesday",
    "wed": "Wednesday",
    "thu": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"


@dataclass(frozen=True)
class Interval:
    """Hours of the wall clock, from *first* to *last* ("18:00", not included), that begin on *days*.

    An interval whose *last* is not after its *first* ends on the next day.
    """

    first: str
    last: str
    days: tuple[str, ...]

    def covers(self, local: datetime) -> bool:
        """Return whether the wall clock time *local* is in the interval."""
        minute, weekday = local.hour * 60 + local.minute, local.weekday()
        first, last = _minutes(self.first), _minutes(self.last)
        if first < last:
            return first <= minute < last and self._begins_on(weekday)
        return (minute >= first and self._begins_on(weekday)) or (
            minute < last and self._begins_on((weekday - 1) % 7)
        )

    def _begins_on(self, weekday: int) -> bool:
        return not self.days or list(DAYS)[weekday] in self.days

    def __str__(self) -> str:
        return f"{self.first}-{self.last}{' ' if self.days else ''}{','.join(self.days)}"


def _minutes(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


class Rule:
    is_lasting = False
    shape = ObjectShape(
        {
            "forbid": ListShape(
                ObjectShape(
                    {
                        "from": TextShape(_TIME, 'a time of the day such as "08:00"'),
                        "to": TextShape(f"{_TIME}|24:00", 'a time of the day such as "18:00"'),
                        "days": ListShape(
                            ChoiceShape(DAYS, "a day on which the hours begin"),
                            "the days on which the hours begin; without this key, every day",
                        ),
                    },
                    required=("from", "to"),
                    description="from this time until before that time; over midnight if not later",
                ),
                "hours in which no run starts, by the clock of the policy's time zone",
            )
        },
        required=("forbid",),
        description="when runs may start",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._intervals = [
            Interval(item["from"], item["to"], item.get("days", ())) for item in values["forbid"]
        ]

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # any run
        local = situation.now.astimezone(situation.clock)
        for interval in self._intervals:
            if interval.covers(local):
                return f"forbidden hours {interval} {situation.clock_name}"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return {"forbid": [str(interval) for interval in self._intervals]}
