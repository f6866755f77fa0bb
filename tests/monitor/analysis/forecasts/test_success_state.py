"""Ends of runs update the probability of success and the time until a run has passed."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from typing import Any

from monitor.analysis.forecasts.metric_state import STAGE, followed
from monitor.analysis.forecasts.refresh import (
    refresh_all,
    refresh_companions,
    refresh_requested,
    reset,
    reset_outdated,
)
from monitor.analysis.forecasts.success_state import SuccessEstimate, estimates
from monitor.core.compression import pack_state
from monitor.depot.rollups import mark_dirty
from monitor.models import ForecastState, Metric, Run, Series, SuccessState
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def deliver(slot: datetime, *, passed: bool = True, **changes: Any) -> None:
    report = circle_report(slot, **changes) if passed else failed_circle_report(slot)
    assert ingest(wire.to_json(report)).accepted


def stored_state(series: Series) -> tuple[bytes, bytes, int]:
    row = SuccessState.objects.get(series=series)
    assert not row.is_behind
    return bytes(row.state or b""), bytes(row.used or b""), row.n


def test_most_runs_pass_where_most_have_passed(circle: Series, noon: datetime) -> None:
    for number in range(20):
        deliver(noon + number * MINUTE, passed=number % 10 != 3, ring_seconds=4.0 + number % 3)
    refresh_all(noon + 21 * MINUTE)
    row, total = SuccessState.objects.get(), ForecastState.objects.get(metric__name="total.seconds")
    assert row.n == 20
    assert 0.7 < (row.probability or 0.0) < 0.99
    assert row.expected_seconds is not None
    assert total.forecast is not None
    assert total.forecast.mean < row.expected_seconds < 2 * total.forecast.mean
    assert row.quantiles == sorted(row.quantiles or [])


def test_runs_that_say_nothing_about_the_path_do_not_count(circle: Series, noon: datetime) -> None:
    deliver(noon)
    for number, outcome in enumerate(("broken", "no_data", "skipped"), start=1):
        deliver(noon + number * MINUTE, outcome=outcome, reason="not this time", stages=[], metrics=[])
    Run.objects.create(
        id=wire.run_id("circle", noon + HOUR), series=circle, slot=noon + HOUR, due_at=noon, state="missed"
    )
    refresh_all(noon + 2 * HOUR)
    assert SuccessState.objects.get().n == 1


def test_ends_used_step_by_step_equal_a_rebuilt_state(circle: Series, noon: datetime) -> None:
    draw = random.Random(1)
    slots = [noon + number * 7 * MINUTE for number in range(40)]
    late = draw.sample(slots[:-1], 3)
    for slot in slots:
        if slot not in late:
            deliver(slot, passed=draw.random() < 0.7)
        if draw.random() < 0.5:
            refresh_all(slot + MINUTE)
    for slot in late:
        deliver(slot)
        refresh_all(slots[-1] + MINUTE)
    refresh_all(slots[-1] + MINUTE)
    step_by_step = stored_state(circle)
    assert step_by_step[2] == 40
    reset([circle.pk])
    refresh_all(slots[-1] + MINUTE)
    assert stored_state(circle) == step_by_step
    mark_dirty.mark([(circle.pk, noon)])
    refresh_all(slots[-1] + MINUTE)
    assert stored_state(circle) == step_by_step


def test_the_first_question_has_an_answer_at_once(circle: Series, noon: datetime) -> None:
    for number in range(4):
        deliver(noon + number * MINUTE)
    total = Metric.objects.get(name="total.seconds")
    assert refresh_requested(total, noon + 4 * MINUTE, time.monotonic() + 60.0)
    refresh_companions(total, noon + 4 * MINUTE, time.monotonic() + 60.0)
    assert SuccessState.objects.get().n == 4
    assert SuccessState.objects.get().expected_seconds is not None
    asked = {"total.seconds", *(metric.name for metric in followed(name__startswith=STAGE))}
    assert {state.metric.name: state.n for state in ForecastState.objects.all()} == dict.fromkeys(asked, 4)
    stages = ForecastState.objects.get(metric__name="total.seconds").explanation
    assert {stage["metric"] for stage in stages or ()} >= {
        "stage.init.seconds",
        "stage.transfer_ring.seconds",
    }


def test_states_of_other_versions_are_reset(circle: Series, noon: datetime) -> None:
    deliver(noon)
    refresh_all(noon + MINUTE)
    before = stored_state(circle)
    SuccessState.objects.update(versions=b"another!", state=pack_state(b"another! state"))
    assert reset_outdated() == 1
    refresh_all(noon + MINUTE)
    assert stored_state(circle) == before


def test_estimates_do_not_depend_on_when_they_are_computed(circle: Series, noon: datetime) -> None:
    for number in range(20):
        deliver(noon + number * MINUTE, passed=number % 3 != 1)
    refresh_all(noon + 20 * MINUTE)
    before = stored_estimate(circle)
    reset([circle.pk])
    refresh_all(noon + 9 * HOUR)
    assert stored_estimate(circle) == before


def test_the_estimate_for_a_time_depends_on_its_hour_and_on_the_age_of_the_data(
    circle: Series, noon: datetime
) -> None:
    for day in range(20):  # fails for an hour from noon on
        for hour in range(-1, 2):
            slot = noon + timedelta(days=day) + hour * HOUR
            deliver(slot, passed=hour != 0, ring_seconds=4.0)
            deliver(slot + 20 * MINUTE, passed=hour != 0, ring_seconds=5.0)
    tomorrow = noon + timedelta(days=20)
    refresh_all(tomorrow - HOUR)
    ready = stored_estimate(circle)
    then = {hour: estimates([circle.pk], tomorrow + hour * HOUR)[circle.pk] for hour in range(-1, 2)}
    chance = {hour: estimate.success_probability or 0.0 for hour, estimate in then.items()}
    assert 0.0 < chance[0] < 0.3
    assert chance[-1] > chance[0]
    assert chance[1] > 0.5
    assert (then[0].success_seconds or 0.0) > (then[1].success_seconds or 0.0)
    assert stored_estimate(circle) == ready
    assert estimates([circle.pk], noon)[circle.pk] == ready  # a past time: as of the latest input


def stored_estimate(series: Series) -> SuccessEstimate:
    row = SuccessState.objects.get(series=series)
    return SuccessEstimate(
        success_n=row.n,
        success_probability=row.probability,
        success_seconds=row.expected_seconds,
        success_quantiles=row.quantiles,
    )
