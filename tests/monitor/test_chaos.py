"""Thousands of runs while everything that carries them is killed, or forgets: each slot ends once.

800 runs here; ``make chaos`` has 20,000, of another course each time. GRIDCAST_CHAOS_RUNS says how many,
GRIDCAST_CHAOS_SEED which course.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.db.models import Count
from django.utils import timezone

from monitor.embedded.clean import clean
from monitor.models import Run, Transition
from monitor.models.run import State
from reporters.spool import Spool
from tests.monitor.chaos import ledger, plan, slots
from tests.monitor.chaos.processes import Gridcast
from tests.waiting import eventually

RUNS = int(os.environ.get("GRIDCAST_CHAOS_RUNS", "800"))
SEED = int(os.environ.get("GRIDCAST_CHAOS_SEED", "1"))
STALLED_SECONDS = 240.0  # none has ended for so long: none will
SPOOLED_SECONDS = 30.0  # for a last report whose executor was killed before it had its receipt


@pytest.fixture
def gridcast(transactional_db: None, tmp_path: Path) -> Iterator[Gridcast]:
    var = tmp_path / "var"
    yield Gridcast(var)
    clean(var)


@pytest.mark.chaos
@pytest.mark.alone
def test_whatever_is_killed_or_forgotten_each_slot_has_one_outcome(
    gridcast: Gridcast, tmp_path: Path
) -> None:
    slots.expect(RUNS, timezone.now(), tmp_path)
    with gridcast.running():
        try:
            _go_through(gridcast)
        except AssertionError as error:
            raise AssertionError(f"{error}\nseed {SEED}: {_stand()}\n{gridcast.said()}") from error
    assert Counter(Run.objects.values_list("state", flat=True)) == {State.PASSED: RUNS}, _stand()
    sums = f"{RUNS} slots of {RUNS} series in 31 days: 0 missing, 0 doubled, 0 overdue"
    assert sums in gridcast.manage("ledger", "audit")
    ledger.check_that_each_report_is_there_once(RUNS)
    ledger.check_that_each_went_a_way_that_there_is(RUNS)


def _go_through(gridcast: Gridcast) -> None:
    """Do what is planned, each when its time has come, until all runs have ended and their reports are in."""
    began = time.monotonic()
    for event in plan.drawn(SEED, RUNS):
        _wait_for(event.ended)
        event.happen(gridcast)
        print(f"{time.monotonic() - began:6.1f} s  {event}", flush=True)
    _wait_for(RUNS)
    seconds = time.monotonic() - began
    attempts = sorted(Counter(Run.objects.values_list("attempt", flat=True)).items())
    print(f"seed {SEED}: {RUNS} runs in {seconds:.0f} s, {RUNS / seconds:.0f} a second; attempts {attempts}")
    spool = Spool(gridcast.spool)
    assert eventually(lambda: not list(spool.pending()), within_seconds=SPOOLED_SECONDS)
    assert list((gridcast.spool / "bad").iterdir()) == []


def _wait_for(ended: int) -> None:
    """Until so many runs have ended, as long as any do."""
    so_far = Run.objects.ended().count()
    while so_far < ended:
        more = eventually(partial(_ended_beside, so_far), within_seconds=STALLED_SECONDS)
        assert more, f"{so_far} of {RUNS} runs have ended, and no more"
        so_far += more


def _ended_beside(before: int) -> int:
    """How many runs have ended beside those *before*."""
    return Run.objects.ended().count() - before


def _stand() -> str:
    """How many runs are in which state, and what steps were taken why."""
    states = Counter(Run.objects.order_by().values_list("state", "attempt"))
    steps = Transition.objects.order_by().values_list("source", "target", "cause").annotate(times=Count("*"))
    return f"{dict(states)}, {list(steps)}"
