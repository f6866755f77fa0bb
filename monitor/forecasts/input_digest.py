"""What a forecaster has used, as sums by hour: enough to see that one of its inputs is not what it was.

An input is hashed to 64 bits (the finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom
number generators", 2014, over its four fields in turn), and the hashes of an hour are added up, whatever
their order. So what comes new to an hour is added without reading the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MOST_HOURS = 48  # of a metric, the newest that have anything
_HOUR = 3_600_000_000  # microseconds
_LONG_AGO = -(1 << 62)
_WHOLE = 1 << 64
_KEPT = np.dtype([("hour", "<i8"), ("sum", "<u8")])


@dataclass
class Used:
    """*sums* by the number of the hour (``hours``), and the *total* of all that there ever was. Of hours
    before *since* nothing is remembered but that."""

    sums: dict[int, int] = field(default_factory=dict)
    since: int = _LONG_AGO
    total: int = 0

    @classmethod
    def load(cls, kept: bytes | None) -> Used:
        """Go on with what ``dump`` returned; None: nothing was used yet."""
        if not kept:
            return cls()
        (since, total), *rows = np.frombuffer(kept, _KEPT).tolist()
        return cls(dict(rows), since, total)

    def dump(self) -> bytes:
        """The newest hours alone; equal for equal inputs that came in the same order."""
        hours = sorted(self.sums)
        if len(hours) > MOST_HOURS:
            self.since = hours[-MOST_HOURS]
            self.sums = {hour: self.sums[hour] for hour in hours[-MOST_HOURS:]}
        rows = [(self.since, self.total), *sorted(self.sums.items())]
        return np.array(rows, _KEPT).tobytes()

    def add(self, hour: int, hashed: int) -> None:
        self.total = (self.total + hashed) % _WHOLE
        if hour >= self.since:
            self.sums[hour] = (self.sums.get(hour, 0) + hashed) % _WHOLE

    def are(self, found: Mapping[int, int]) -> bool | None:
        """Whether the sums of these hours are as *found*; None where that is not remembered of one."""
        if any(hour >= self.since and self.sums.get(hour, 0) != found[hour] for hour in found):
            return False
        return None if any(hour < self.since for hour in found) else True


NEVER_SO = Used(since=1 << 62, total=1).dump()  # what no inputs come to


def hours(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the hour that each of *times* (microseconds since 1970) is in."""
    return times // _HOUR


def hashes(inputs: NDArray[np.void]) -> NDArray[np.uint64]:
    """Of each of *inputs* (``monitor.forecasts.inputs_sql.INPUT``)."""
    found = np.zeros(len(inputs), np.uint64)
    for name in ("metric", "time", "known_at", "value"):
        found = _mixed(
            found + np.uint64(0x9E3779B97F4A7C15) + np.ascontiguousarray(inputs[name]).view(np.uint64)
        )
    return found


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
