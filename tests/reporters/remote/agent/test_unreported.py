"""What is kept of the runs that have no report yet."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from reporters.remote.agent.admission import SiteRun
from reporters.remote.agent.unreported import MOST, UnreportedRun, UnreportedRuns
from reporters.remote.assignment import parse
from tests.reporters.remote.assignments import assignment

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_the_newest_are_kept_in_order_and_the_others_counted() -> None:
    site = parse(json.dumps(assignment()), "ncsa")
    series = site.series["noop-ncsa"]
    runs = UnreportedRuns()
    for minute in range(MOST + 2):
        run = SiteRun(series, NOON + timedelta(minutes=minute), NOON)
        runs.add(UnreportedRun(run, site.run_of(series, run.slot), "broken", "no space"))
    assert (len(runs), runs.given_up) == (MOST, 2)
    assert [each.run.slot.minute for each in runs.take(2)] == [2, 3]
    assert len(runs.take(MOST)) == MOST - 2
    assert runs.take(-1) == []
