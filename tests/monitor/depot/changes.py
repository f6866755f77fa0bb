"""Changes of a depot as Hypothesis strategies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from monitor.depot.engines import engine
from monitor.depot.engines.timescale import TimescaleEngine
from monitor.depot.rollups.worker import rebuild, roll
from monitor.models import DirtyHour
from tests.monitor.depot.compared_depot import ComparedDepot
from tests.monitor.depot.depot_model import DAY, HOUR, MetricKey, ParserVariant, RetentionDays, floor
from tests.monitor.depot.sample_model import FIRST, STEP, Value
from tests.rollups import roll_all

DAYS = 6  # from 27 February: spans two partitions
END = FIRST + DAYS * DAY
NAMES = ("circle", "ring")  # of the series and of their suites
EACH = [MetricKey(name, segment) for name in NAMES for segment in (0, 1)]
STEPS = DAYS * 144

times = st.integers(0, STEPS - 1).map(lambda step: FIRST + step * STEP)
numbers = st.one_of(
    st.floats(0.001, 1e4), st.sampled_from([0.0, -1.5, 1e-12, 3.0, 3.0, 1e18]), st.floats(-1e4, -0.001)
)
values = st.tuples(st.integers(0, 100_000), numbers, st.booleans() | st.just(True))
metrics = st.builds(MetricKey, st.sampled_from(NAMES), st.sampled_from([0, 0, 1]))


@dataclass(frozen=True)
class Step:
    """One change of the depot, and its name in a printed example."""

    name: str
    arguments: Any = ()

    def apply(self, depot: ComparedDepot) -> None:
        CHANGES[self.name](depot, *self.arguments)


def ingest(depot: ComparedDepot, metric: MetricKey, new: Mapping[datetime, tuple[int, float, bool]]) -> None:
    depot.ingest(
        metric,
        {at: Value(at + timedelta(seconds=late), value, passed) for at, (late, value, passed) in new.items()},
    )


def fill(depot: ComparedDepot, metric: MetricKey, day: int, number_of: int, seed: int) -> None:
    """Fill a day with so many samples that it has hourly rollups."""
    at = [FIRST + day * DAY + step * STEP for step in range(number_of)]
    depot.ingest(
        metric,
        {
            time: Value(time, 1 + (seed * 7919 + step * 104729) % 1000 / 7, (seed + step) % 11 != 0)
            for step, time in enumerate(at)
        },
    )


def deliver_again(depot: ComparedDepot, pick: int) -> None:
    """Deliver stored reports again with other values."""
    delivered = sorted(depot.model.ran.items())[pick % 5 :: 5]
    for ran, (metric, value) in delivered:
        depot.ingest(metric, {ran.slot: replace(value, value=value.value + 1)})


def reparse(depot: ComparedDepot, *arguments: Any) -> None:
    depot.reparse(*arguments)


def would_reparse(depot: ComparedDepot, reading: ParserVariant, since: datetime) -> None:
    depot.would_reparse(reading, since)


def retain(depot: ComparedDepot, *arguments: Any) -> None:
    depot.retain(*arguments)


def begin_to_retain(depot: ComparedDepot, *arguments: Any) -> None:
    depot.begin_to_retain(*arguments)


def would_retain(depot: ComparedDepot, *arguments: Any) -> None:
    depot.would_retain(*arguments)


def pack(_: ComparedDepot) -> None:
    """Compress old chunks if the engine can."""
    if isinstance(engine(), TimescaleEngine):
        engine().prepare_ahead(END + 40 * DAY)


def roll_until(depot: ComparedDepot, now: datetime) -> None:
    roll(now, within_seconds=60)
    depot.model.rolled(floor(now, HOUR))


def roll_everything(depot: ComparedDepot) -> None:
    roll_all()
    depot.model.rolled()
    assert not DirtyHour.objects.exists()


def rebuild_all(depot: ComparedDepot) -> None:
    for _progress in rebuild():
        pass
    depot.model.rolled()


def begin_to_rebuild(depot: ComparedDepot) -> None:
    """Start a rebuild that is killed after its first step."""
    next(rebuild())
    depot.model.anew_from = FIRST


CHANGES: dict[str, Callable[..., None]] = {
    change.__name__: change
    for change in (
        *(ingest, fill, deliver_again, reparse, would_reparse, retain, begin_to_retain, would_retain),
        *(pack, roll_until, roll_everything, rebuild_all, begin_to_rebuild),
    )
}


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(Step, st.just(name), st.tuples(*arguments))


def kept(reports: int | None, others: list[int | None]) -> RetentionDays:
    """Return retention times in which rollups are kept at least as long as samples."""
    return RetentionDays(reports, *sorted(others, key=lambda days: math.inf if days is None else days))


some_days = st.none() | st.integers(1, DAYS + 2)
keeps = st.builds(kept, some_days, st.lists(some_days, min_size=3, max_size=3))
all_keeps = st.fixed_dictionaries(dict.fromkeys(NAMES, keeps))
all_reports_kept = st.fixed_dictionaries(
    dict.fromkeys(NAMES, st.builds(kept, st.none(), st.lists(some_days, min_size=3, max_size=3)))
)
nows = st.integers(24, 24 * (DAYS + 4)).map(lambda hours: FIRST + hours * HOUR)
readings = st.builds(ParserVariant, st.sampled_from([1.0, 2.0, 0.5, -1.0]), st.sampled_from([0, 0, 2, 3]))
arrivals = step("ingest", metrics, st.dictionaries(times, values, min_size=1, max_size=10)) | step(
    "fill", metrics, st.integers(0, DAYS - 1), st.sampled_from([47, 49, 144]), st.integers(0, 9)
)
some_series = st.sampled_from([NAMES, NAMES[:1], NAMES[1:]])
corrections = step(
    "reparse",
    readings,
    st.just(FIRST) | times,
    some_series,
    st.sampled_from([1, 7, 200]),
    st.sampled_from([1, 99]),
) | step("reparse", readings, st.just(FIRST), st.just(NAMES), st.just(200), st.just(99))
retentions = step("retain", nows, all_keeps) | step(
    "begin_to_retain", nows, all_reports_kept, st.integers(1, 4)
)
rollings = (
    step("roll_until", times) | step("roll_everything") | step("rebuild_all") | step("begin_to_rebuild")
)
asides = (
    step("would_reparse", readings, times)
    | step("would_retain", nows, all_keeps)
    | step("deliver_again", st.integers(0, 4))
    | step("pack")
)
steps = arrivals | corrections | retentions | rollings | asides
windows = (
    st.tuples(times, times).map(sorted)
    | st.tuples(st.integers(0, DAYS), st.integers(0, DAYS)).map(
        lambda days: [FIRST + day * DAY for day in sorted(days)]
    )
    | st.just([FIRST, END])
)
