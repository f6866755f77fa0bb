"""Pack counts of outcomes for the depot, as arrays of numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from monitor.models import OutcomeBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

HOURS = 24
SERIES = OutcomeBlock.SERIES
# Runs that a statement counted, by series and hour. Times and durations are microseconds, as PostgreSQL sends
# them.
COUNTED = np.dtype(
    [
        ("series", ">i8"), ("hour", ">i8"), ("passed", ">i4"), ("outages", ">i4"), ("repairs", ">i4"),
        ("operating", ">i8"), ("repairing", ">i8"),
    ]
)  # fmt: skip
REPAIRS = np.dtype([("outages", "<i4"), ("repairs", "<i4"), ("operating", "<i8"), ("repairing", "<i8")])
PASSED = np.dtype("<u4")
KEY = np.dtype("<i8")
# A failed run: its slot in microseconds after the hour, its cause (0: not classified), and the positions of
# its resource and its stage among the names of the hour.
STORED_FAILURE = np.dtype(
    [
        ("offset", "<u4"), ("series", "<i8"), ("signature", "<i4"), ("place", "<u4"), ("stage", "<u4"),
        ("in_maintenance", "?"),
    ]
)  # fmt: skip
FAILURE = np.dtype(
    [
        ("slot", "<i8"), ("series", "<i8"), ("signature", "<i4"), ("place", "<i4"), ("stage", "<i4"),
        ("in_maintenance", "?"),
    ]
)  # fmt: skip


@dataclass
class DayBlocks:
    """The blocks of a day: *passed* by shard, hour and series, *repairs* by shard and series."""

    shards: Numbers
    passed: NDArray[np.uint32]
    repairs: NDArray[np.void]

    @classmethod
    def empty(cls, shards: Sequence[int] | Numbers) -> DayBlocks:
        keys = np.unique(np.asarray(shards, np.int64))
        return cls(keys, np.zeros((len(keys), HOURS, SERIES), PASSED), np.zeros((len(keys), SERIES), REPAIRS))

    @classmethod
    def unpack(cls, rows: Sequence[tuple[int, bytes, bytes]]) -> DayBlocks:
        """Return the blocks whose shards and packed columns are *rows*, in order of shards."""
        return cls(
            np.array([shard for shard, _, _ in rows], np.int64),
            np.frombuffer(b"".join(passed for _, passed, _ in rows), PASSED)
            .reshape(-1, HOURS, SERIES)
            .copy(),
            np.frombuffer(b"".join(repairs for _, _, repairs in rows), REPAIRS).reshape(-1, SERIES).copy(),
        )

    def pack(self) -> list[tuple[int, bytes, bytes]]:
        """Return the shard and the packed columns of each block that is not empty."""
        has_runs = self.passed.any(axis=(1, 2)) | (self.repairs != np.zeros(1, REPAIRS)).any(axis=1)
        return [
            (int(self.shards[at]), self.passed[at].tobytes(), self.repairs[at].tobytes())
            for at in np.flatnonzero(has_runs)
        ]

    def clear(self, series: Numbers) -> None:
        """Set the counts of *series* to zero."""
        at, within = self._places(series)
        self.passed[at, :, within] = 0
        self.repairs[at, within] = np.zeros(1, REPAIRS)

    def add(self, counted: NDArray[np.void], midnight: int) -> None:
        """Add runs *counted* (``COUNTED``) on the day that begins at *midnight*."""
        at, within = self._places(counted["series"])
        hours = (counted["hour"] - midnight) // 3_600_000_000
        np.add.at(self.passed, (at, hours, within), counted["passed"].astype(PASSED))
        for name in REPAIRS.names or ():
            np.add.at(self.repairs[name], (at, within), counted[name].astype(REPAIRS[name]))

    def _places(self, series: Numbers) -> tuple[Numbers, Numbers]:
        return np.searchsorted(self.shards, series // SERIES), series % SERIES

    @property
    def series(self) -> Numbers:
        """The keys of all series of the blocks, in order."""
        return (self.shards[:, None] * SERIES + np.arange(SERIES)).ravel()


@dataclass(frozen=True)
class PackedDay:
    """The columns of ``OutcomeDay``."""

    shards: bytes
    passed: bytes
    suites: bytes
    suite_passed: bytes
    suite_repairs: bytes


@dataclass(frozen=True)
class SuiteDay:
    """The counts of a day by suite: *passed* by suite and hour, *repairs* (``REPAIRS``) by suite."""

    suites: Numbers
    passed: Numbers
    repairs: NDArray[np.void]

    @classmethod
    def unpack(cls, suites: bytes, passed: bytes, repairs: bytes) -> SuiteDay:
        return cls(
            np.frombuffer(suites, KEY),
            np.frombuffer(passed, KEY).reshape(-1, HOURS),
            np.frombuffer(repairs, REPAIRS),
        )


def sum_up(day: DayBlocks, keys: Numbers, suites: Numbers) -> PackedDay:
    """Return the sums of the blocks of a *day*. *keys* are those of all series, in order, *suites* theirs."""
    series = day.series
    at = np.searchsorted(keys, series)
    exists = np.zeros(len(series), np.bool_)
    within = at < len(keys)
    exists[within] = keys[at[within]] == series[within]
    named, number = np.unique(suites[at[exists]], return_inverse=True)
    passed, repairs = np.zeros((len(named), HOURS), KEY), np.zeros(len(named), REPAIRS)
    np.add.at(passed, number, day.passed.swapaxes(1, 2).reshape(-1, HOURS)[exists].astype(KEY))
    for name in REPAIRS.names or ():
        np.add.at(repairs[name], number, day.repairs.ravel()[name][exists])
    return PackedDay(
        shards=day.shards.astype(KEY).tobytes(),
        passed=day.passed.sum(axis=1, dtype=PASSED).tobytes(),
        suites=named.astype(KEY).tobytes(),
        suite_passed=passed.tobytes(),
        suite_repairs=repairs.tobytes(),
    )


class Names:
    """The positions of names among all that were seen."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def position(self, name: str) -> int:
        return self._positions.setdefault(name, len(self._positions))

    @property
    def listed(self) -> list[str]:
        return list(self._positions)


FailedRow = tuple[int, int, int | None, str, str, bool]  # slot (us), series, cause, resource, stage, excused


def failures(rows: Iterable[FailedRow], names: Names) -> NDArray[np.void]:
    """Return *rows* as an array of ``FAILURE``."""
    return np.array(
        [
            (slot, series, signature or 0, names.position(place), names.position(stage), in_maintenance)
            for slot, series, signature, place, stage, in_maintenance in rows
        ],
        FAILURE,
    )


def pack_failures(failed: NDArray[np.void], hour: int) -> bytes:
    """Pack the failed runs of the *hour* that begins at so many microseconds."""
    packed = np.empty(len(failed), STORED_FAILURE)
    packed["offset"] = failed["slot"] - hour
    for name in ("series", "signature", "place", "stage", "in_maintenance"):
        packed[name] = failed[name]
    return packed.tobytes()


def unpack_failures(
    rows: Sequence[tuple[int, bytes, Sequence[str]]], names: Names, *, has_names: bool
) -> NDArray[np.void]:
    """Return the failed runs of *rows*: the start of an hour, its packed runs, its names.

    Without *has_names*, places and stages are undefined.
    """
    packed = np.frombuffer(b"".join(runs for _, runs, _ in rows), STORED_FAILURE)
    counts = [len(runs) // STORED_FAILURE.itemsize for _, runs, _ in rows]
    failed = np.empty(len(packed), FAILURE)
    failed["slot"] = np.repeat(np.array([hour for hour, _, _ in rows], np.int64), counts) + packed["offset"]
    for name in ("series", "signature", "place", "stage", "in_maintenance"):
        failed[name] = packed[name]
    if has_names and rows:
        local = np.concatenate(
            [np.array([names.position(name) for name in own], np.int32) for _, _, own in rows]
        )
        first = np.cumsum([0, *(len(own) for _, _, own in rows[:-1])])
        begins = np.repeat(first, counts)
        for name in ("place", "stage"):
            failed[name] = local[begins + packed[name]]
    return failed
