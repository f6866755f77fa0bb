"""An outage of the server: the agent runs on, and the ledger has each of its slots once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from monitor.models import Heartbeat, RawReport, Run, Series, Transition
from monitor.models.run import REPORTED, State
from monitor.runs.fleet.assignment import current_assignment
from monitor.runs.ingest.chains import ingest_parts
from monitor.runs.ledger.agent_runs import DELIVERY
from monitor.runs.ledger.audit import audit
from monitor.tick import tick
from reporters.remote import assignment
from reporters.remote.agent.timetable import DueSlot, Timetable
from tests.monitor.runs.fleet.remote_series import disk, remote_grid
from tests.monitor.runs.ingest.spooled import SpooledChain

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
BACK = NOON + timedelta(hours=26)


def slots_that_the_agent_ran(document: str) -> list[DueSlot]:
    """Return what an agent with the assignment *document* runs between noon and the end of the outage."""
    timetable = Timetable(assignment.parse(document, "ncsa"), NOON, complain=pytest.fail)
    minutes = (BACK - NOON) // MINUTE
    return [due for minute in range(minutes + 1) for due in timetable.due(NOON + minute * MINUTE)[0]]


def deliver(chain: SpooledChain, slots: Sequence[DueSlot]) -> None:
    first = chain.next
    for due in slots:
        target = {"target": ("ncsa-login",)}
        chain.report(due.slot, series=due.series.name, bindings=target, started_at=due.due_at)
    receipt = ingest_parts("ncsa", [chain.part(range(first, chain.next))])
    assert (receipt.refused, receipt.conflicts) == ((), ())


@pytest.mark.django_db
def test_the_ledger_expects_the_slots_that_the_agent_ran_and_doubles_none() -> None:
    with_leader = {"schedule": "", "leader": "often", "follows": "with", "delay_seconds": 90}
    often = disk("often", schedule="H/25 * * * *", jitter_seconds=40)
    local = disk("local", schedule="30 3,4 * * *", timezone="Europe/Berlin")
    reporter = remote_grid(disk(), often, local, disk("beside", **with_leader))
    Series.objects.update(created_at=NOON)
    document = current_assignment(reporter, NOON).document
    tick(NOON)
    slots = slots_that_the_agent_ran(document)
    third, chain = len(slots) // 3, SpooledChain("ncsa")
    deliver(chain, slots[:third])  # before the first tick
    tick(BACK)
    deliver(chain, slots[third : 2 * third])
    Heartbeat.objects.update(seen_at=BACK + DELIVERY - SECOND)  # it ticked meanwhile
    tick(BACK + DELIVERY)
    ended = Run.objects.filter(slot__lte=BACK)
    assert ended.filter(state=State.MISSED).count() == len(slots) - 2 * third
    deliver(chain, slots[2 * third :])
    deliver(SpooledChain("ncsa"), slots)  # again, by an agent whose spool was restored from a backup
    assert sorted(ended.values_list("series__name", "slot", "state")) == sorted(
        (due.series.name, due.slot, "passed") for due in slots
    )
    assert RawReport.objects.count() == len(slots)
    assert Transition.objects.filter(target__in=REPORTED).count() == len(slots)
    assert audit(NOON, BACK).findings == []
