"""Runs that ended, for those that follow them: each once, without imported history."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from monitor.models import Series
from monitor.runs.ingest.service import ingest_all
from monitor.runs.ledger.ended_runs import next_events, subscribe
from reporters import report as wire
from tests.monitor.builders import circle_report


def test_a_reported_run_is_told_and_an_imported_one_is_not(circle: Series) -> None:
    subscribe("test", is_wanted=True)
    now = timezone.now().replace(microsecond=0)
    slots = {trigger: now - timedelta(minutes=minutes) for minutes, trigger in enumerate(TRIGGERS, start=1)}
    for trigger, slot in slots.items():
        ingest_all([wire.to_json(circle_report(slot, series=circle.name))], trigger=trigger)
    _, told = next_events("test", now)
    assert [event.run.slot for event in told] == [slots["reporter"]]


TRIGGERS = ("import: csv history.csv", "reporter")
