"""Which times of a report are plausible: none before 1970, and none that has not come yet.

A reporter whose clock is wrong must not create partitions for decades, nor samples that become known only
years from now.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reporters.report import rfc3339

MINUTE = timedelta(minutes=1)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
# The latest slot and the latest end of a run after now. Clocks of hosts without NTP are ahead by minutes.
# A report of a slot that lies further ahead would take the place of the genuine one.
AHEAD = timedelta(minutes=5)
# A report up to this far ahead is premature: its sender's clock was set, and time will catch up with it.
PREMATURE = timedelta(days=1)


def time_error(name: str, time: datetime, latest: datetime) -> str:
    """Return why the field *name* cannot be *time*: it is before 1970, or after *latest*; "" if it can."""
    if EARLIEST <= time <= latest:
        return ""
    limit = (
        "is before 1970"
        if time < EARLIEST
        else f"is more than {AHEAD // MINUTE} minutes after now, {rfc3339(latest - AHEAD)}"
    )
    return f"{name}: {rfc3339(time)} {limit}: set the clock of the reporter and send it again"
