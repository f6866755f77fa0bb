"""The tick of the scheduler: after outages, and with two schedulers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection

from monitor import tick
from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.models import Run, Series
from monitor.models.run import State
from monitor.runs.ledger import heartbeats
from monitor.runs.ledger.expand import AHEAD
from monitor.runs.ledger.run_now import run_now

MINUTE = timedelta(minutes=1)
EVERY_MINUTE_AHEAD = AHEAD // MINUTE


def test_after_an_outage_late_slots_are_missed(circle: Series, noon: datetime) -> None:
    tick.tick(noon)
    tick.tick(noon + 30 * MINUTE)
    assert set(Run.objects.filter(slot__lt=noon + 28 * MINUTE).values_list("state", flat=True)) == {
        State.MISSED
    }


def test_a_series_has_no_slots_for_the_time_it_was_disabled(circle: Series, noon: datetime) -> None:
    tick.tick(noon)
    Series.objects.update(enabled=False)
    tick.tick(noon + timedelta(seconds=10))
    heartbeats.record("beat", noon + 300 * MINUTE)
    Series.objects.update(enabled=True)
    tick.tick(noon + 300 * MINUTE + timedelta(seconds=2))
    assert Run.objects.order_by("slot").first().slot == noon + 301 * MINUTE  # type: ignore[union-attr]


def test_of_two_concurrent_ticks_one_does_nothing(circle: Series, noon: datetime) -> None:
    # A second connection holds the lock, as the tick of another scheduler would.
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.TICK])
        tick.tick(noon)
        assert Run.objects.count() == 0
        cursor.execute("SELECT pg_advisory_unlock(%s)", [AdvisoryLock.TICK])
    other.close()
    tick.tick(noon)
    assert Run.objects.count() == EVERY_MINUTE_AHEAD


def test_leases_are_renewed_after_an_outage_of_the_monitor(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    tick.tick(noon)
    assert Run.objects.get(slot=noon).state == State.CLAIMED
    back = noon + timedelta(minutes=5)
    tick.tick(back)
    assert Run.objects.get(slot=noon).state == State.CLAIMED
    for seconds in range(2, 34, 2):
        tick.tick(back + timedelta(seconds=seconds))
    assert Run.objects.get(slot=noon).attempt == 2
