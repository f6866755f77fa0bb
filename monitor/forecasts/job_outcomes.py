"""Store the outcomes of jobs that clients had asked forecasts for, and score these forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from forecasting.evaluation.metrics import forecast_scores
from monitor.forecasts.defaults import LEVEL
from monitor.forecasts.refresh import record_outcome
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
    if not 0 < forecast <= LARGEST_KEY:
        raise UnknownForecast(f"there is no forecast {forecast}")
    found = Forecast.objects.visible_to(consumer).filter(pk=forecast).select_related("metric").first()
    if found is None:
        raise UnknownForecast(f"there is no forecast {forecast} that you may see")
    _check(found, reported, now)
    fields = {
        "forecast": found,
        "metric": found.metric,
        "passed": reported.passed,
        "started_at": reported.started_at,
        "ended_at": reported.ended_at,
        "seconds": reported.took_seconds,
    }
    with transaction.atomic():
        outcome, is_new = Outcome.objects.get_or_create(
            consumer_id=consumer.pk, job=reported.job, defaults={**fields, "received_at": now}
        )
        if is_new:
            record_outcome(outcome)
    if not is_new and any(getattr(outcome, name) != value for name, value in fields.items()):
        before = f"{outcome} was reported at {outcome.received_at:%Y-%m-%d %H:%M:%S} UTC"
        raise ConflictingOutcome(f"the job {reported.job!r} has another outcome already: {before}")
    return outcome, is_new


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
    if not job.job.strip() or len(job.job) > JOB_CHARACTERS or "\x00" in job.job:
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
    if not forecast.outcomes.filter(job=job.job).exists() and forecast.outcomes.count() >= MOST_JOBS:
        raise InvalidOutcome(f"{MOST_JOBS} outcomes of this forecast have been reported: ask for another one")
