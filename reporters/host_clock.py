"""The host's clock in a report: its time, and how far it was off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reporters.fields import Fields

MOST_CORRECTION_SECONDS = 2.0**31  # a clock that was never set begins in 1970


@dataclass(frozen=True)
class Clock:
    """The host's clock: its time when the report was made, and what is to be added to the start of the run.

    *correction_seconds* is 0 if the clock was right, or the reporter does not know the server's time.
    """

    sent_at: datetime
    synchronised: bool
    correction_seconds: float = 0.0

    def corrected(self, time: datetime) -> datetime:
        """Return the server's time at *time* of the host. Raises OverflowError if that is no time."""
        return time + timedelta(seconds=self.correction_seconds)


def parse_clock(fields: Fields) -> Clock:
    """Parse the object ``clock`` of a report. Raises Unfit if it is malformed."""
    most, name = MOST_CORRECTION_SECONDS, "correction_seconds"
    return Clock(
        sent_at=fields.time("sent_at"),
        synchronised=fields.boolean("synchronised"),
        correction_seconds=fields.number(name, minimum=-most, maximum=most) if name in fields else 0.0,
    )
