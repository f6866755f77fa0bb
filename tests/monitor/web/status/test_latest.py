"""The table of latest states: correct at every moment, whatever happened and whenever rows were updated."""

from __future__ import annotations

import math
import os
import uuid
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.core.db import partitions
from monitor.depot.rollups import dirty_hours, mark_dirty
from monitor.depot.rollups.worker import roll
from monitor.models import DirtyHour, Metric, Reporter, Run, Sample, Segment, Series, Suite
from monitor.models import LatestRun as Kept
from monitor.models.run import ENDED, REPORTED, State
from monitor.runs.ledger import transitions
from monitor.web.status import latest_sql
from monitor.web.status.latest import Latest, latest
from reporters import report as wire

EXAMPLES = int(os.environ.get("GRIDCAST_DEPOT_EXAMPLES", "12"))  # heavier by hand
QUARTER = timedelta(minutes=15)
SERIES, SEGMENTS, SLOTS = 3, 2, 200  # slots are a quarter of an hour apart: two days

series_numbers = st.integers(0, SERIES - 1)
slots = st.integers(0, SLOTS - 1)
reported = st.sampled_from(REPORTED) | st.just(State.PASSED)
seconds = st.floats(0.5, 1e4)


@dataclass(frozen=True)
class Expected:
    """The latest state of one series, computed from its runs and samples."""

    state: str
    run: uuid.UUID | None
    stage: str
    outcomes: str
    means: Sequence[float]


class Killed(Exception):
    """The process was killed."""


class Grid:
    """A few series and the events that change them; slot 0 is at *first*."""

    def __init__(self, first: datetime) -> None:
        self.first = first
        DirtyHour.objects.all().delete()
        self.series = [new_series() for _ in range(SERIES)]
        partitions.create_for([first, first + SLOTS * QUARTER])

    def end(self, number: int, slot: int, segment: int, state: State, took: float) -> None:
        """Ingest a report of a slot, unless it has one."""
        series, at = self.series[number], self.first + slot * QUARTER
        with transaction.atomic():
            run = self._listed(series, at)
            fields: dict[str, Any] = {
                "stage": "run",
                "failed_resource": "host",
                "ended_at": at + QUARTER,
            }
            moved = transitions.move(Run.objects.all(), [run.pk], state, cause="reported", **fields)
            if moved and state == State.PASSED:
                metric = metric_of(series, segment)
                Sample.objects.create(metric=metric, time=at, known_at=at, value=took, passed=True)

    def miss(self, number: int, slot: int) -> None:
        """Mark a slot as missed; a report may still arrive."""
        run = self._listed(self.series[number], self.first + slot * QUARTER)
        transitions.move(Run.objects.all(), [run.pk], State.MISSED, cause="no reporter claimed it")

    def correct(self, number: int, slot: int, took: float) -> None:
        """Correct a value, as reparsing does."""
        at = self.first + slot * QUARTER
        with transaction.atomic():
            chosen = Sample.objects.filter(metric__segment__series=self.series[number], time=at)
            if Sample.objects.filter(metric__in=chosen.values("metric"), time=at).update(value=took):
                mark_dirty.mark([(self.series[number].pk, at)])

    def lose(self, number: int, slot: int) -> None:
        """Delete a value, as reparsing does."""
        at = self.first + slot * QUARTER
        Sample.objects.filter(metric__segment__series=self.series[number], time=at).delete()
        mark_dirty.mark([(self.series[number].pk, at)])

    def fill(self, number: int, slot: int) -> None:
        """Let more runs pass than a trend has."""
        series, metric = self.series[number], metric_of(self.series[number], 0)
        slots_of_runs = set(Run.objects.filter(series=series).values_list("slot", flat=True))
        at = [self.first + later * QUARTER for later in range(slot, min(slot + 30, SLOTS))]
        new = [time for time in at if time not in slots_of_runs]
        Run.objects.bulk_create(
            Run(state=State.PASSED, ended_at=time, **listed(series, time)) for time in new
        )
        values = {"metric": metric, "passed": True}
        Sample.objects.bulk_create(
            Sample(time=time, known_at=time, value=time.hour, **values) for time in new
        )
        mark_dirty.mark([(series.pk, time) for time in at])

    def rename(self, number: int) -> None:
        self.series[number].name = f"renamed-{uuid.uuid4()}"
        self.series[number].save()

    def remove(self, number: int) -> None:
        """Delete a series and create another."""
        self.series[number].delete()
        self.series[number] = new_series()

    def bring_up(self) -> None:
        roll(self.first + SLOTS * QUARTER)

    def bring_some_up(self, at_most: int) -> None:
        with transaction.atomic():
            latest_sql.update_rows(dirty_hours.gather(at_most))

    def be_killed(self, at_most: int) -> None:
        with suppress(Killed), transaction.atomic():
            latest_sql.update_rows(dirty_hours.gather(at_most))
            raise Killed

    def _listed(self, series: Series, at: datetime) -> Run:
        return Run.objects.get_or_create(series=series, slot=at, defaults=listed(series, at))[0]


def listed(series: Series, at: datetime) -> dict[str, Any]:
    return {"id": wire.run_id(f"{series.pk}", at), "series": series, "slot": at, "due_at": at}


def new_series() -> Series:
    home, _ = Reporter.objects.get_or_create(name="home")
    suite, _ = Suite.objects.get_or_create(name="main")
    return Series.objects.create(name=f"series-{uuid.uuid4()}", probe="noop", suite=suite, reporter=home)


def metric_of(series: Series, number: int) -> Metric:
    """Return the total of segment *number*."""
    began = {"fingerprint": str(number), "began_at": series.created_at, "probe": series.probe}
    segment, _ = Segment.objects.get_or_create(series=series, number=number, defaults=began)
    return Metric.objects.get_or_create(segment=segment, name="total.seconds", unit="seconds")[0]


def expected(series: Series, now: datetime) -> Expected:
    runs = sorted(Run.objects.filter(series=series, state__in=ENDED), key=lambda run: run.slot)
    fields = [run for run in runs if run.state != State.SKIPPED]
    samples = Sample.objects.filter(metric__segment__series=series, passed=True).order_by("time")
    last = samples.last()
    hours: dict[datetime, list[float]] = defaultdict(list)
    for sample in samples.filter(metric=last.metric_id) if last else []:
        hours[sample.time.replace(minute=0)].append(sample.value)
    newest = max(now, last.time if last else now).replace(minute=0, second=0, microsecond=0)
    hours_shown = [newest - ago * timedelta(hours=1) for ago in range(23, -1, -1)]
    return Expected(
        state=fields[-1].state[0] if fields else " ",
        run=fields[-1].pk if fields else None,
        stage=fields[-1].stage if fields else "",
        outcomes="".join(run.state[0] for run in runs[-20:]),
        means=[fmean(hours[hour]) if hours[hour] else math.nan for hour in hours_shown],
    )


def row_of(answer: Latest, series: Series) -> Expected:
    (row,) = np.flatnonzero(answer.series == series.pk)
    assert answer.name[row] == Series.objects.get(pk=series.pk).name
    state = answer.state[row].decode() or " "
    return Expected(
        state=state,
        run=None if state == " " else uuid.UUID(bytes=bytes(answer.run[row])),
        stage=answer.stage[row],
        outcomes=answer.outcomes[row].tobytes().decode().strip(),
        means=answer.means[row].tolist(),
    )


def same(first: Expected, other: Expected) -> bool:
    means = np.allclose(first.means, other.means, rtol=1e-6, equal_nan=True)
    return means and replace(first, means=()) == replace(other, means=())


numbers = st.integers(1, 5)
steps = st.one_of(
    st.tuples(st.just("end"), series_numbers, slots, st.integers(0, SEGMENTS - 1), reported, seconds),
    st.tuples(st.sampled_from(["miss", "lose"]), series_numbers, slots),
    st.tuples(st.just("correct"), series_numbers, slots, seconds),
    st.tuples(st.just("fill"), series_numbers, slots),
    st.tuples(st.sampled_from(["rename", "remove"]), series_numbers),
    st.tuples(st.sampled_from(["bring_some_up", "be_killed"]), numbers),
    st.tuples(st.just("bring_up")),
)


@given(happened=st.lists(steps, min_size=1, max_size=15), now=slots)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_events_the_rows_follow_from_runs_and_samples(
    db: None, noon: datetime, happened: list[tuple[Any, ...]], now: int
) -> None:
    grid = Grid(noon)
    for name, *fields in happened:
        getattr(grid, name)(*fields)
    at = noon + now * QUARTER
    for _ in range(2):
        answer = latest(Series.objects.all(), at)
        for series in grid.series:
            assert same(row_of(answer, series), expected(series, at)), series
        grid.bring_up()


def test_a_late_report_within_the_trend_shows_at_once(db: None, noon: datetime) -> None:
    grid = Grid(noon)
    grid.fill(0, 100)
    grid.miss(0, 132)
    grid.bring_up()
    grid.end(0, 141, 0, State.PASSED, 3.0)
    grid.bring_up()
    grid.end(0, 132, 0, State.FAILED, 3.0)
    assert row_of(latest(Series.objects.all(), noon), grid.series[0]).outcomes.endswith("pfp")


def test_earlier_hours_return_when_later_values_are_deleted(db: None, noon: datetime) -> None:
    grid = Grid(noon)
    grid.end(0, 8, 0, State.PASSED, 3.0)
    grid.end(0, 150, 0, State.PASSED, 4.0)
    grid.bring_up()
    grid.lose(0, 150)
    answer = latest(Series.objects.all(), noon + 9 * QUARTER)
    assert [row_of(answer, grid.series[0]).means[-1]] == [3.0]


def test_changes_before_the_shown_hours_cause_no_recomputation(db: None, noon: datetime) -> None:
    grid = Grid(noon)
    grid.fill(0, 150)
    grid.bring_up()
    grid.end(0, 3, 0, State.PASSED, 3.0)
    Kept.objects.update(stage="as it is kept")
    assert row_of(latest(Series.objects.all(), noon), grid.series[0]).stage == "as it is kept"


def test_extreme_values_of_a_reporter_do_not_break_the_rows_of_others(db: None, noon: datetime) -> None:
    grid = Grid(noon)
    grid.end(0, 8, 0, State.PASSED, 1e300)
    grid.end(1, 8, 0, State.PASSED, 1e-300)
    grid.end(2, 8, 0, State.PASSED, 7.0)
    grid.bring_up()
    answer = latest(Series.objects.all(), noon + 8 * QUARTER)
    assert [row_of(answer, series).means[-1] for series in grid.series] == [pytest.approx(1e30), 0.0, 7.0]
