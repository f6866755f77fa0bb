"""Detect changes of inputs that a state has already used, by one sum of hashes per hour.

An input is hashed to 64 bits (the finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom
number generators", 2014, over its fields in turn). The hashes of an hour are added, so their order does
not matter, and a new input is added without reading the inputs before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.analysis.forecasts.inputs_sql import INPUT

MOST_HOURS = 48  # per state: the newest that have inputs
HOUR_MICROSECONDS = 3_600_000_000
_LONG_AGO = -(1 << 62)
_MODULUS = 1 << 64
_STORED = np.dtype([("hour", "<i8"), ("sum", "<u8")])


class Input(NamedTuple):
    """A value of the metric or series *key*.

    Attributes:
        time, ended_at: start and end of the run or job, in microseconds since 1970, like all times.
        known_at: when the value became known.
        filed_at: the time by which the input is found: *time* of a run, *known_at* of a job.
        hour: the hour of *filed_at*, in hours since 1970.
        hashed: the hash of the other fields, as ``hashes`` computes it.
    """

    key: int
    time: int
    ended_at: int
    known_at: int
    filed_at: int
    value: float
    hour: int
    hashed: int


@dataclass
class InputDigest:
    """Sums of the hashes of used inputs, by hour since 1970; hours before *since* have been dropped."""

    sums: dict[int, int] = field(default_factory=dict)
    since: int = _LONG_AGO

    @classmethod
    def load(cls, stored: bytes | memoryview | None) -> InputDigest:
        """Return the digest that ``dump`` stored; for None, return the digest of no inputs."""
        if not stored:
            return cls()
        (since, _), *rows = np.frombuffer(stored, _STORED).tolist()
        return cls(dict(rows), since)

    def dump(self) -> bytes:
        """Return the sums of the newest ``MOST_HOURS`` hours as bytes.

        Digests of equal inputs, used in the same order, have equal bytes.
        """
        hours = sorted(self.sums)
        if len(hours) > MOST_HOURS:
            self.since = hours[-MOST_HOURS]
        rows = [(self.since, 0), *((hour, self.sums[hour]) for hour in hours[-MOST_HOURS:])]
        return np.array(rows, _STORED).tobytes()

    def add(self, used: Input) -> None:
        if used.hour >= self.since:
            self.sums[used.hour] = (self.sums.get(used.hour, 0) + used.hashed) % _MODULUS

    def matches(self, hours: Collection[int], inputs: Iterable[Input]) -> bool:
        """Return whether exactly *inputs* were used in *hours*; False if one of *hours* was dropped."""
        if any(hour < self.since for hour in hours):
            return False
        sums = dict.fromkeys(hours, 0)
        for used in inputs:
            sums[used.hour] = (sums[used.hour] + used.hashed) % _MODULUS
        return all(self.sums.get(hour, 0) == total for hour, total in sums.items())


NEVER_MATCHES = InputDigest(since=1 << 62).dump()


def by_key(rows: NDArray[np.void]) -> Mapping[int, list[Input]]:
    """Return the inputs in *rows*, which ``inputs_sql`` has read, by key of the metric or series."""
    inputs: dict[int, list[Input]] = defaultdict(list)
    hours = (rows["filed_at"] // HOUR_MICROSECONDS).tolist()
    columns = [*(rows[name].tolist() for name in INPUT.names or ()), hours, hashes(rows).tolist()]
    for row in zip(*columns, strict=True):
        inputs[row[0]].append(Input(*row))
    return inputs


def hashes(inputs: NDArray[np.void]) -> NDArray[np.uint64]:
    """Return the hash of each of *inputs*."""
    found = np.zeros(len(inputs), np.uint64)
    for name in INPUT.names or ():
        found = _mixed(
            found + np.uint64(0x9E3779B97F4A7C15) + np.ascontiguousarray(inputs[name]).view(np.uint64)
        )
    return found


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
