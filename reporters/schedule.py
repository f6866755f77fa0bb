"""Stable hashed slots: pure functions of (schedule, name).

``H`` in a field of a five-field cron expression stands for a number that is hashed from the series' name over
the field's full range, so that thousands of series spread evenly and a restart changes nothing. ``H/15`` is
every 15 from a hashed start, ``H(0-29)`` a number in that range. The names ``@hourly``, ``@daily`` ... mean
the hashed ones.
"""

from __future__ import annotations

import hashlib
import re

RANGES = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 28), ("month", 1, 12), ("weekday", 0, 6))
NAMED = {
    "@hourly": "H * * * *",
    "@daily": "H H * * *",
    "@weekly": "H H * * H",
    "@monthly": "H H H * *",
    "@yearly": "H H H H *",
}
_HASHED = re.compile(r"H(?:\((\d+)-(\d+)\))?(?:/(\d+))?")


class InvalidSchedule(ValueError):
    """A schedule that cannot be read; says which field, and what was expected."""


def resolve(schedule: str, name: str) -> str:
    """Return *schedule* as plain cron, every ``H`` replaced by the number hashed from *name*.

    Raises:
        InvalidSchedule: not five fields, or a range or step that does not fit its field.
    """
    fields = NAMED.get(schedule.strip(), schedule).split()
    if len(fields) != len(RANGES):
        raise InvalidSchedule(f"schedule {schedule!r}: expected five fields, got {len(fields)}")
    return " ".join(_resolve_field(field, name, *RANGES[i]) for i, field in enumerate(fields))


def _resolve_field(field: str, name: str, what: str, lowest: int, highest: int) -> str:
    def number(match: re.Match[str]) -> str:
        first = int(match[1] or lowest)
        last = int(match[2] or highest)
        step = int(match[3] or 0)
        if not lowest <= first <= last <= highest or step > last - first:
            raise InvalidSchedule(f"{what} field {field!r}: outside {lowest}-{highest}")
        if not step:
            return str(first + hashed(name, what, last - first + 1))
        return f"{first + hashed(name, what, step)}-{last}/{step}"

    return _HASHED.sub(number, field)


def hashed(name: str, what: str, size: int) -> int:
    """A number in [0, size) that depends on *name* and *what* alone: the same everywhere, evenly spread."""
    digest = hashlib.sha256(f"{what}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % size
