"""Outcomes are counted in steps, again after changes, and read together with runs that are not counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User

from monitor.analysis.outcomes import worker
from monitor.analysis.outcomes.read import RunOutcomes
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.depot.retention import expiry_sql
from monitor.depot.rollups import worker as rollups
from monitor.models import DirtyOutcome, OutcomeDay, OutcomeProgress, Run, Series, Suite
from tests.monitor.conftest import NOON
from tests.monitor.web.pages import builders

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EVER = float("inf")


@pytest.fixture
def ring(db: None) -> Series:
    return builders.circle("ring", builders.sites(2))


def outcomes(start: datetime = NOON - DAY, end: datetime = NOON + 20 * DAY) -> RunOutcomes:
    return RunOutcomes(User(is_superuser=True), start, end)


def passed(start: datetime = NOON - DAY, end: datetime = NOON + 20 * DAY) -> int:
    return int(outcomes(start, end).passed_by_hour.runs.sum())


def test_runs_are_read_until_they_are_counted(ring: Series) -> None:
    builders.passed(ring, NOON)
    assert passed() == 1
    worker.count(NOON + HOUR, within_seconds=EVER)
    Run.objects.all().delete()  # what is counted is no longer read
    assert passed() == 1
    builders.passed(ring, NOON + 2 * HOUR)
    assert passed() == 2


def test_the_past_is_counted_day_by_day_newest_first(ring: Series) -> None:
    for ago in (0, 1, 5):
        builders.passed(ring, NOON - ago * DAY)
    days = []
    while worker.count(NOON + HOUR, within_seconds=0):
        days.append(OutcomeDay.objects.count())
    # The first steps may count what the definition of the ring has outdated.
    assert [number for number in days if number] == [1, 2, 3, 3]
    assert OutcomeProgress.objects.get().since == OutcomeProgress.ALL
    assert passed(NOON - 5 * DAY, NOON + HOUR) == 3


def test_a_late_run_is_counted_once_its_dirty_hour_is_gathered(ring: Series) -> None:
    worker.count(NOON + DAY, within_seconds=EVER)
    builders.passed(ring, NOON)
    assert passed() == 0
    rollups.gather()
    worker.count(NOON + DAY, within_seconds=EVER)
    assert passed() == 1
    assert not DirtyOutcome.objects.exists()


def test_a_late_run_whose_samples_have_expired_is_counted(ring: Series) -> None:
    Suite.objects.update(keep_samples_days=1)
    expiry_sql.advance(NOON + 10 * DAY)
    worker.count(NOON + DAY, within_seconds=EVER)
    builders.passed(ring, NOON)
    rollups.gather()
    worker.count(NOON + DAY, within_seconds=EVER)
    assert passed() == 1


def test_a_cause_found_later_replaces_the_counted_one(ring: Series) -> None:
    sent = builders.report(ring, NOON)
    builders.delivered(builders.failed(sent, "transfer_ring", "site1-login", "No space left on device"))
    worker.count(NOON + HOUR, within_seconds=EVER)
    assert outcomes().failed["signature"].tolist() == [0]
    classify_runs(NOON + HOUR)
    worker.count(NOON + HOUR, within_seconds=EVER)
    assert outcomes().failed["signature"].tolist() == [Run.objects.get().signature_id]


def test_the_failures_of_a_deleted_series_are_gone_at_once_and_its_passed_runs_after_counting(
    ring: Series,
) -> None:
    builders.passed(ring, NOON)
    builders.delivered(builders.failed(builders.report(ring, NOON + HOUR), "init", "site1-login", "broken"))
    worker.count(NOON + DAY, within_seconds=EVER)
    ring.delete()
    assert outcomes().failed.tolist() == []
    worker.count(NOON + DAY, within_seconds=EVER)
    assert passed() == 0
