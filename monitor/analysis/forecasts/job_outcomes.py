"""Store the outcomes of jobs that clients had asked forecasts for, and score these forecasts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count

from forecasting.evaluation.metrics import forecast_scores
from monitor.analysis.forecasts.defaults import LEVEL
from monitor.analysis.forecasts.job_outcomes_sql import insert
from monitor.analysis.forecasts.refresh import record_outcomes
from monitor.models import Forecast, Outcome

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

JOB_CHARACTERS = 200
MOST_JOBS = 1000  # per forecast
MOST_SECONDS = 1e9
LARGEST_KEY = 2**63 - 1
CLOCK_TOLERANCE = timedelta(seconds=60)
ROUNDING_SECONDS = 1.0  # of clients that report whole seconds
NEWEST = 1000  # outcomes that the accuracy is computed from
_SAME = ("forecast_id", "metric_id", "passed", "started_at", "ended_at", "seconds")
OUTCOME_COLUMNS = (
    *("received_at", "passed", "seconds", "forecast__median", "forecast__lower", "forecast__upper"),
    *("forecast__last_value", "forecast__level"),
)


class OutcomeError(Exception):
    """An outcome was refused; the message says why.

    UnknownForecast     the user can see no forecast with this key
    InvalidOutcome      a time, a duration or a name is impossible
    ConflictingOutcome  the user has reported a different outcome of this job
    """


class UnknownForecast(OutcomeError):
    pass


class InvalidOutcome(OutcomeError):
    pass


class ConflictingOutcome(OutcomeError):
    pass


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of *job*, a name that the owner of the job chose.

    *seconds* is compared with the forecast; by default it is the time from *started_at* to *ended_at*.
    """

    job: str
    passed: bool
    started_at: datetime
    ended_at: datetime
    seconds: float | None = None

    @property
    def wall_seconds(self) -> float:
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def took_seconds(self) -> float:
        return self.wall_seconds if self.seconds is None else self.seconds


@dataclass(frozen=True)
class Accuracy:
    """Scores of the forecasts that a consumer received for its newest jobs; a score without data is None.

    Attributes:
        n: the number of jobs.
        passed: the number of jobs that passed; only their forecasts are scored.
        level: the probability of the interval.
        mean_absolute_error, mean_absolute_scaled_error: errors of the median.
        relative_error: the sum of the errors divided by the sum of the durations.
        coverage: the share of actual values in the interval.
        newest_at: when the newest outcome was received.
    """

    n: int
    passed: int
    level: float
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    newest_at: datetime | None


def record_job_outcome(
    consumer: AbstractBaseUser | AnonymousUser, forecast: int, reported: JobOutcome, now: datetime
) -> tuple[Outcome, bool]:
    """Store the outcome of a job that used the forecast with the key *forecast*.

    Return the outcome, and whether it is new. Reporting the same outcome again is idempotent. *consumer* is
    the user who reports it.

    Raises:
        OutcomeError: the outcome was refused, and nothing was stored.
    """
    (result,) = record_job_outcomes(consumer, [(forecast, reported)], now)
    if isinstance(result, OutcomeError):
        raise result
    return result


def record_job_outcomes(
    consumer: AbstractBaseUser | AnonymousUser, reported: Sequence[tuple[int, JobOutcome]], now: datetime
) -> list[tuple[Outcome, bool] | OutcomeError]:
    """Store outcomes of jobs, each with the key of its forecast, in one transaction of a few statements.

    Return for each what ``record_job_outcome`` returns or raises. A refused outcome keeps no other one from
    being stored.
    """
    keys = {forecast for forecast, _ in reported if 0 < forecast <= LARGEST_KEY}
    visible = Forecast.objects.visible_to(consumer).filter(pk__in=keys).select_related("metric__segment")
    forecasts = {forecast.pk: forecast for forecast in visible}
    jobs = {job.job for _, job in reported if _is_name(job.job)}
    with transaction.atomic():
        stored = _stored(consumer, jobs)
        counted = Outcome.objects.filter(forecast__in=forecasts).values_list("forecast")
        counts = Counter(dict(counted.annotate(Count("pk")).order_by()))
        new: dict[str, Outcome] = {}
        results: list[tuple[Outcome, bool] | OutcomeError] = []
        for key, job in reported:
            try:
                outcome = _outcome(consumer, forecasts.get(key), key, job, now)
                before = stored.get(job.job) or new.get(job.job)
                if before is None:
                    _count(counts, key)
                    new[job.job] = outcome
                else:
                    _check_same(before, outcome)
                results.append((before or outcome, before is None))
            except OutcomeError as error:
                results.append(error)
        inserted = insert(new.values())
        record_outcomes([new[job] for job in inserted])
    if len(inserted) == len(new):
        return results
    by_others = _stored(consumer, new.keys() - inserted)  # at the same time
    return [_against(by_others, result) for result in results]


def _stored(consumer: AbstractBaseUser | AnonymousUser, jobs: Collection[str]) -> dict[str, Outcome]:
    """Return the stored outcomes of *jobs* of *consumer*, by the name of the job."""
    rows = Outcome.objects.filter(consumer_id=consumer.pk, job__in=jobs)
    return {outcome.job: outcome for outcome in rows}


def _outcome(
    consumer: AbstractBaseUser | AnonymousUser,
    forecast: Forecast | None,
    key: int,
    job: JobOutcome,
    now: datetime,
) -> Outcome:
    """Return the row of *job*, not stored. Raises OutcomeError if it cannot be one of *forecast*."""
    if forecast is None:
        seen = " that you may see" if 0 < key <= LARGEST_KEY else ""
        raise UnknownForecast(f"there is no forecast {key}{seen}")
    _check(forecast, job, now)
    return Outcome(
        consumer_id=consumer.pk,  # type: ignore[misc]  # of a stored user
        job=job.job,
        forecast=forecast,
        metric=forecast.metric,
        passed=job.passed,
        started_at=job.started_at,
        ended_at=job.ended_at,
        seconds=job.took_seconds,
        received_at=now,
    )


def _count(counts: Counter[int], forecast: int) -> None:
    """Count one more outcome of *forecast*. Raises InvalidOutcome if it has too many."""
    if counts[forecast] >= MOST_JOBS:
        raise InvalidOutcome(f"{MOST_JOBS} outcomes of this forecast have been reported: ask for another one")
    counts[forecast] += 1


def _check_same(before: Outcome, outcome: Outcome) -> None:
    """Raise ConflictingOutcome if *outcome* is not what was reported *before* of the same job."""
    if any(getattr(before, name) != getattr(outcome, name) for name in _SAME):
        when = f"{before} was reported at {before.received_at:%Y-%m-%d %H:%M:%S} UTC"
        raise ConflictingOutcome(f"the job {outcome.job!r} has another outcome already: {when}")


def _against(
    by_others: Mapping[str, Outcome], result: tuple[Outcome, bool] | OutcomeError
) -> tuple[Outcome, bool] | OutcomeError:
    """Return *result*, judged again if another request has stored an outcome of the same job."""
    before = None if isinstance(result, OutcomeError) else by_others.get(result[0].job)
    if isinstance(result, OutcomeError) or before is None:
        return result
    try:
        _check_same(before, result[0])
    except ConflictingOutcome as error:
        return error
    return before, False


def accuracy(
    consumer: AbstractBaseUser | AnonymousUser, reader: AbstractBaseUser | AnonymousUser
) -> Accuracy:
    """Return the accuracy of the forecasts for *consumer*, from the outcomes that *reader* may see."""
    outcomes = Outcome.objects.visible_to(reader).filter(consumer=consumer.pk)
    newest = outcomes.order_by("-received_at", "-pk")
    return accuracy_of(newest.values_list(*OUTCOME_COLUMNS, named=True)[:NEWEST])


def accuracy_of(outcomes: Iterable[Any]) -> Accuracy:
    """Return the accuracy over *outcomes*, newest first; each is a named row with ``OUTCOME_COLUMNS``."""
    rows = list(outcomes)
    passed = [row for row in reversed(rows) if row.passed and row.seconds is not None]
    baselines = [row.forecast__last_value for row in passed]
    scores = forecast_scores(
        [row.seconds for row in passed],
        [row.forecast__median for row in passed],
        [row.forecast__lower for row in passed],
        [row.forecast__upper for row in passed],
        last_value=[math.nan if value is None else value for value in baselines],
    )
    return Accuracy(
        n=len(rows),
        passed=sum(row.passed for row in rows),
        level=rows[0].forecast__level if rows else LEVEL,
        mean_absolute_error=scores.mean_absolute_error,
        relative_error=_ratio(scores.mean_absolute_error, [row.seconds for row in passed]),
        mean_absolute_scaled_error=scores.mean_absolute_scaled_error,
        coverage=scores.coverage,
        newest_at=rows[0].received_at if rows else None,
    )


def _ratio(mean_error: float | None, seconds: Sequence[float]) -> float | None:
    """Return the sum of the errors divided by the sum of *seconds*; None if that is zero."""
    whole = sum(seconds)
    return None if mean_error is None or not whole else mean_error * len(seconds) / whole


def _check(forecast: Forecast, job: JobOutcome, now: datetime) -> None:
    """Raise InvalidOutcome if *job* cannot be an outcome of *forecast*."""
    if not _is_name(job.job):
        raise InvalidOutcome(f"job: expected 1 to {JOB_CHARACTERS} characters, got {job.job[:300]!r}")
    if forecast.metric.unit != "seconds":
        raise InvalidOutcome(f"the forecast is of {forecast.metric.unit}, and a job takes seconds")
    if job.ended_at > now + CLOCK_TOLERANCE:
        raise InvalidOutcome(f"ended_at: expected a time that is past, got {job.ended_at.isoformat()}")
    if job.started_at > job.ended_at:
        raise InvalidOutcome(f"started_at: expected a time before the end, got {job.started_at.isoformat()}")
    if job.started_at < forecast.issued_at - CLOCK_TOLERANCE:
        issued = f"{forecast.issued_at:%Y-%m-%d %H:%M:%S} UTC, when the forecast was issued"
        raise InvalidOutcome(f"started_at: expected a time after {issued}")
    if not (math.isfinite(job.took_seconds) and 0 <= job.took_seconds <= MOST_SECONDS):
        raise InvalidOutcome(f"seconds: expected 0 to {MOST_SECONDS:g}, got {job.took_seconds}")
    if job.took_seconds > job.wall_seconds + ROUNDING_SECONDS:
        whole = f"{job.wall_seconds:g} from start to end"
        raise InvalidOutcome(f"seconds: expected no more than the {whole}, got {job.took_seconds:g}")


def _is_name(job: str) -> bool:
    return bool(job.strip()) and len(job) <= JOB_CHARACTERS and "\x00" not in job
