"""After a run that did not pass, a series runs sooner until it passes again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from monitor.models import Run, Series
from monitor.models.run import RETRY, SCHEDULE, State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.retry import retry

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def hourly(circle: Series, noon: datetime) -> Series:
    Series.objects.update(schedule="0 * * * *", retry_schedule="*/10 * * * *")
    expand(noon)
    return circle


def end(slot: datetime, state: State) -> None:
    transitions.move(Run.objects.all(), [Run.objects.get(slot=slot).pk], state, cause="it ran")


def retries() -> list[datetime]:
    return list(Run.objects.filter(trigger=RETRY).order_by("slot").values_list("slot", flat=True))


def test_a_series_that_passes_gets_no_retry(hourly: Series, noon: datetime) -> None:
    end(noon + HOUR, State.PASSED)
    assert retry(noon + HOUR + MINUTE) == 0


@pytest.mark.parametrize("state", [State.FAILED, State.BROKEN, State.TIMED_OUT, State.MISSED])
def test_a_failed_series_runs_at_the_next_slot_of_its_retry_schedule(
    hourly: Series, noon: datetime, state: State
) -> None:
    end(noon + HOUR, state)
    assert retry(noon + HOUR + MINUTE) == 1
    assert retry(noon + HOUR + 2 * MINUTE) == 0
    assert retries() == [noon + HOUR + 10 * MINUTE]


@pytest.mark.parametrize("state", [State.SKIPPED, State.NO_DATA])
def test_skipped_runs_and_runs_without_data_are_not_retried(
    hourly: Series, noon: datetime, state: State
) -> None:
    end(noon + HOUR, state)
    assert retry(noon + HOUR + MINUTE) == 0


def test_retries_stop_after_retry_passes_in_a_row(hourly: Series, noon: datetime) -> None:
    Series.objects.update(retry_passes=2)
    end(noon + HOUR, State.FAILED)
    for number, state in enumerate((State.PASSED, State.FAILED, State.PASSED, State.PASSED), start=1):
        assert retry(noon + HOUR + (10 * number - 9) * MINUTE) == 1
        end(noon + HOUR + 10 * number * MINUTE, state)
    assert retry(noon + HOUR + 41 * MINUTE) == 0


def test_no_retry_is_added_before_an_earlier_own_slot(hourly: Series, noon: datetime) -> None:
    end(noon + HOUR, State.FAILED)
    assert retry(noon + HOUR + 55 * MINUTE) == 0
    assert set(Run.objects.values_list("trigger", flat=True)) == {SCHEDULE}


def test_retries_of_a_disabled_series_are_deleted(hourly: Series, noon: datetime) -> None:
    end(noon + HOUR, State.FAILED)
    retry(noon + HOUR + MINUTE)
    Series.objects.update(enabled=False)
    expand(noon + HOUR + MINUTE)
    assert retries() == []


def test_an_invalid_retry_schedule_is_ignored(hourly: Series, noon: datetime) -> None:
    Series.objects.update(retry_schedule="banana")
    end(noon + HOUR, State.FAILED)
    assert retry(noon + HOUR + MINUTE) == 0
