"""Outcomes of jobs overlap, come late, in any order and twice: forecasts neither know them early nor bend."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User

from forecasting.series import Forecaster
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.job_outcomes import (
    ConflictingOutcome,
    JobOutcome,
    accuracy,
    record_job_outcome,
)
from monitor.analysis.forecasts.refresh import refresh, refresh_all, reset
from monitor.core.compression import unpack_state
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import (
    DirtyHour,
    Forecast,
    ForecastState,
    Metric,
    Outcome,
    PendingChange,
    Sample,
    Series,
    SuccessState,
)
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MONTH = timedelta(days=30)
RUNS = 60


@pytest.fixture
def scheduler(db: None) -> User:
    return User.objects.create_user("scheduler")


@pytest.fixture
def total(circle: Series, noon: datetime) -> Metric:
    """A metric with a forecast from runs of about 6 seconds, one each minute until *noon*."""
    ingest(wire.to_json(circle_report(noon - 2 * HOUR)))
    Metric.objects.exclude(name="total.seconds").delete()
    Sample.objects.all().delete()
    DirtyHour.objects.all().delete()
    metric = Metric.objects.get()
    put(metric, noon - RUNS * MINUTE)
    refresh_all(noon)
    return metric


def put(metric: Metric, begin: datetime) -> None:
    rows = [
        SampleRow(metric.pk, begin + n * MINUTE, begin + n * MINUTE + MINUTE / 2, 5.0 + n * 7 % 3, True)
        for n in range(RUNS)
    ]
    write.write(rows)
    mark_dirty.mark({(metric.segment.series_id, row.time) for row in rows})


def ran(job: str, start: datetime, seconds: float, *, passed: bool = True) -> JobOutcome:
    return JobOutcome(job, passed, start, start + timedelta(seconds=seconds))


def side_by_side(start: datetime, count: int = 40) -> list[JobOutcome]:
    """Return jobs that start every ten seconds and take minutes."""
    draw = random.Random(5)
    return [
        ran(f"job {n}", start + timedelta(seconds=10 * n), draw.lognormvariate(5.5, 0.3))
        for n in range(count)
    ]


def followed_state(metric: Metric) -> tuple[bytes, bytes, int]:
    row = ForecastState.objects.get(metric=metric)
    assert not row.is_behind
    return bytes(row.state or b""), bytes(row.used or b""), row.n


def forecaster_of(metric: Metric) -> Forecaster:
    return Forecaster.load(unpack_state(bytes(ForecastState.objects.get(metric=metric).state or b"")))


def rebuilt(metric: Metric, now: datetime) -> tuple[bytes, bytes, int]:
    reset([metric.segment.series_id])
    refresh_all(now)
    return followed_state(metric)


def report(
    scheduler: User, forecast: Forecast, outcomes: Sequence[JobOutcome], at: datetime, *, every: timedelta
) -> datetime:
    """Report *outcomes*, the first at *at*, or when it has ended; refresh after every third; return when."""
    for number, outcome in enumerate(outcomes):
        at = max(at + every, outcome.ended_at)
        record_job_outcome(scheduler, forecast.pk, outcome, at)
        if number % 3 == 0:
            refresh_all(at)
    refresh_all(at)
    return at


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_jobs_side_by_side_are_learned_step_by_step_as_in_a_rebuilt_state(
    total: Metric, scheduler: User, noon: datetime, seed: int | None
) -> None:
    jobs = side_by_side(noon + MINUTE)
    ordered = sorted(jobs, key=lambda job: job.ended_at)
    told = ordered if seed is None else random.Random(seed).sample(jobs, len(jobs))
    end = report(scheduler, issue(total, noon), told, noon + MINUTE, every=MINUTE / 4)
    step_by_step = followed_state(total)
    assert step_by_step[2] <= RUNS + len(jobs)
    if seed is None:
        assert step_by_step[2] == RUNS + len(jobs)
    assert rebuilt(total, end) == step_by_step
    assert not PendingChange.objects.exists()


def test_jobs_reported_together_in_any_order_are_all_learned(
    total: Metric, scheduler: User, noon: datetime
) -> None:
    jobs, now = side_by_side(noon + MINUTE, 15), noon + HOUR
    forecast = issue(total, noon)
    for job in random.Random(3).sample(jobs, len(jobs)):
        record_job_outcome(scheduler, forecast.pk, job, now)
    refresh_all(now)
    assert followed_state(total)[2] == RUNS + len(jobs)
    answer = issue(total, now)
    assert min(job.took_seconds for job in jobs) <= answer.median <= max(job.took_seconds for job in jobs)


def test_an_outcome_moves_no_forecast_before_it_is_received(
    total: Metric, scheduler: User, noon: datetime
) -> None:
    forecast = issue(total, noon)
    before = followed_state(total)
    record_job_outcome(scheduler, forecast.pk, ran("early", noon, 600.0), noon + HOUR)
    refresh_all(noon + HOUR - MINUTE)
    assert followed_state(total) == before
    assert issue(total, noon + HOUR - MINUTE).median == forecast.median
    refresh_all(noon + HOUR)
    assert followed_state(total)[2] == before[2] + 1
    assert issue(total, noon + HOUR).median != forecast.median


def test_the_outcome_of_a_burst_is_compared_with_the_forecast_before_its_start(
    total: Metric, scheduler: User, noon: datetime
) -> None:
    forecast = issue(total, noon)
    burst = [ran(f"job {n}", noon + MINUTE, 300.0 + n) for n in range(30)]
    alone = forecaster_of(total).forecast((noon + HOUR).timestamp()).quantiles
    report(scheduler, forecast, burst, noon + 10 * MINUTE, every=timedelta(seconds=1))
    spread = forecaster_of(total)._spread
    assert spread.overlap > 1.0
    assert spread.kept < RUNS + len(burst) - 10  # side by side they are less evidence than one after another
    after = forecaster_of(total).forecast((noon + HOUR).timestamp()).quantiles
    assert after[0.9] - after[0.1] > 10.0 * (alone[0.9] - alone[0.1])


def test_outcomes_a_month_late_change_no_forecast_and_no_state(
    total: Metric, scheduler: User, noon: datetime
) -> None:
    forecast, now = issue(total, noon), noon + MONTH
    put(total, now - RUNS * MINUTE)
    refresh_all(now)
    before, answer = followed_state(total), issue(total, now)
    for number in range(10):
        record_job_outcome(scheduler, forecast.pk, ran(f"late {number}", noon + number * HOUR, 900.0), now)
    refresh(now + MINUTE)  # one part: nothing is read again
    row = ForecastState.objects.get(metric=total)
    assert (row.is_behind, row.n, row.last_value) == (False, before[2], answer.last_value)
    after = issue(total, now + MINUTE)
    assert (after.median, after.mean, after.quantiles) == (answer.median, answer.mean, answer.quantiles)
    assert forecaster_of(total).superseded == 10
    step_by_step = followed_state(total)
    assert rebuilt(total, now + MINUTE) == step_by_step
    assert accuracy(scheduler, scheduler).n == 10


def test_a_late_outcome_of_a_series_without_newer_runs_is_learned(
    total: Metric, scheduler: User, noon: datetime
) -> None:
    forecast = issue(total, noon)
    record_job_outcome(scheduler, forecast.pk, ran("late", noon + HOUR, 900.0), noon + MONTH)
    refresh_all(noon + MONTH)
    assert (followed_state(total)[2], forecaster_of(total).last_value) == (RUNS + 1, 900.0)


def test_an_outcome_reported_twice_is_learned_once(total: Metric, scheduler: User, noon: datetime) -> None:
    forecast, job = issue(total, noon), ran("twice", noon + MINUTE, 20.0)
    assert record_job_outcome(scheduler, forecast.pk, job, noon + 2 * MINUTE)[1]
    refresh_all(noon + 2 * MINUTE)
    before = followed_state(total)
    assert not record_job_outcome(scheduler, forecast.pk, job, noon + HOUR)[1]
    with pytest.raises(ConflictingOutcome):
        record_job_outcome(scheduler, forecast.pk, ran("twice", noon + MINUTE, 21.0), noon + HOUR)
    refresh_all(noon + HOUR)
    assert followed_state(total) == before
    assert before[2] == RUNS + 1
    assert Outcome.objects.count() == 1


def test_a_failure_reported_late_does_not_say_that_runs_fail_now(
    total: Metric, scheduler: User, noon: datetime
) -> None:
    forecast = issue(total, noon)
    for number in range(30):
        record_job_outcome(
            scheduler,
            forecast.pk,
            ran(f"job {number}", noon + number * HOUR, 9.0),
            noon + number * HOUR + MINUTE,
        )
    now = noon + 30 * HOUR
    refresh_all(now)
    before = SuccessState.objects.get().probability or 0.0
    record_job_outcome(scheduler, forecast.pk, ran("late", noon + MINUTE, 9.0, passed=False), now)
    refresh_all(now)
    late = SuccessState.objects.get().probability or 0.0
    record_job_outcome(scheduler, forecast.pk, ran("new", now, 9.0, passed=False), now + timedelta(seconds=9))
    refresh_all(now + MINUTE)
    new = SuccessState.objects.get().probability or 0.0
    assert before - 0.05 < late < before
    assert new < late - 0.05
