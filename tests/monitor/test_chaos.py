"""Every slot ends exactly once while processes are killed and the broker loses its data.

With 60 runs by default, and half of the disturbances; ``make chaos`` uses 20,000 runs, four rounds of all
disturbances and another seed each time (GRIDCAST_CHAOS_RUNS, GRIDCAST_CHAOS_ROUNDS, GRIDCAST_CHAOS_SEED).
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

from monitor.models import Run, Transition
from monitor.models.run import State
from monitor.operations.embedded.clean import clean
from reporters.spool.spool import Spool
from tests.monitor.chaos import ledger, plan, slots
from tests.monitor.chaos.processes import Gridcast
from tests.waiting import eventually

RUNS = int(os.environ.get("GRIDCAST_CHAOS_RUNS", "60"))
ROUNDS = float(os.environ.get("GRIDCAST_CHAOS_ROUNDS", "0.5"))
SEED = int(os.environ.get("GRIDCAST_CHAOS_SEED", "1"))
STALLED_SECONDS = 240.0  # without any run that ends, before the test gives up


@pytest.fixture
def gridcast(transactional_db: None, tmp_path: Path) -> Iterator[Gridcast]:
    var = tmp_path / "var"
    yield Gridcast(var)
    clean(var)


@pytest.mark.chaos
@pytest.mark.nightly
def test_each_slot_has_one_outcome_whatever_is_killed_or_lost(gridcast: Gridcast, tmp_path: Path) -> None:
    slots.expect(RUNS, timezone.now(), tmp_path)
    with gridcast.running():
        try:
            _disturb_until_all_have_ended(gridcast)
        except AssertionError as error:
            raise AssertionError(f"{error}\nseed {SEED}: {_summary()}\n{gridcast.log_tails()}") from error
    assert Counter(Run.objects.values_list("state", flat=True)) == {State.PASSED: RUNS}, _summary()
    sums = f"{RUNS} slots of {RUNS} series in 31 days: 0 missing, 0 doubled, 0 overdue"
    assert sums in gridcast.manage("ledger", "audit")
    ledger.check_reports(RUNS)
    ledger.check_transitions(RUNS)


def _disturb_until_all_have_ended(gridcast: Gridcast) -> None:
    """Cause the planned disturbances, until all runs have ended and all reports are delivered."""
    began = time.monotonic()
    for event in plan.draw_events(SEED, RUNS, ROUNDS):
        _wait_for(event.ended)
        event.cause(gridcast)
        print(f"{time.monotonic() - began:6.1f} s  {event}", flush=True)
    _wait_for(RUNS)
    seconds = time.monotonic() - began
    attempts = sorted(Counter(Run.objects.values_list("attempt", flat=True)).items())
    print(f"seed {SEED}: {RUNS} runs in {seconds:.0f} s, {RUNS / seconds:.0f} a second; attempts {attempts}")
    spool = Spool(gridcast.spool, "home")
    assert eventually(spool.is_empty)
    assert not (gridcast.spool / "refused").exists()
    assert not (gridcast.spool / "damaged").exists()


def _wait_for(ended: int) -> None:
    """Wait until *ended* runs have ended; fail if none ends for ``STALLED_SECONDS``."""
    so_far = Run.objects.ended().count()
    while so_far < ended:
        more = eventually(partial(_newly_ended, so_far), within_seconds=STALLED_SECONDS)
        assert more, f"{so_far} of {RUNS} runs have ended, and no more"
        so_far += more


def _newly_ended(before: int) -> int:
    """Return how many more than *before* runs have ended."""
    return Run.objects.ended().count() - before


def _summary() -> str:
    """Return the number of runs by state, and of transitions by cause."""
    states = Counter(Run.objects.order_by().values_list("state", "attempt"))
    steps = Transition.objects.order_by().values_list("source", "target", "cause").annotate(times=Count("*"))
    return f"{dict(states)}, {list(steps)}"
