"""A simulated year of 5,000 series over the clocks of all zones, in windows as the ledger expands them.

Every slot is compared with an independent computation (``tests.reporters.simulated_year``), whose time counts
as well. A missing or duplicate slot ends the benchmark. Times are CPU seconds, since nothing waits.
"""

from __future__ import annotations

import time

import numpy as np

from tests.bench.base import Result
from tests.reporters import simulated_year as year

SERIES = 5000
LIMIT_SECONDS = 60.0


def measure() -> list[Result]:
    wall_began, began = time.perf_counter(), time.process_time()
    verified = [_verified(series) for series in year.simulated_series(SERIES)]
    all_seconds, wall_seconds = time.process_time() - began, time.perf_counter() - wall_began
    slots = sum(count for count, _ in verified)
    return [
        Result(
            name="a year of 5,000 schedules, verified / 60 s",
            ratio=all_seconds / LIMIT_SECONDS,
            target=1.0,
            better="lower",
            figures={
                "slots": slots,
                "expanded, slots/s": slots / sum(seconds for _, seconds in verified),
                "all, seconds of the processor": all_seconds,
                "all, seconds on the wall": wall_seconds,
            },
        )
    ]


def _verified(series: year.SimulatedSeries) -> tuple[int, float]:
    """Return the number of slots of *series* in the year, and the seconds to compute them."""
    began = time.process_time()
    slots = year.expanded(series)
    ended = time.process_time()
    if not np.array_equal(slots, year.expected(series)):
        raise AssertionError(f"{series}: slots are missing or doubled")
    return len(slots), ended - began
