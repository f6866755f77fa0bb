"""The audit compares the ledger with the schedules."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.models import Run, Series, Transition
from monitor.models.run import State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.audit import Finding, audit
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import expand

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def test_a_ledger_in_which_every_slot_ended_has_no_findings(circle: Series, noon: datetime) -> None:
    expand(noon)
    Run.objects.update(state=State.MISSED)
    result = audit(noon - DAY, noon + 60 * MINUTE)
    assert (result.series, result.slots, result.findings) == (1, 60, [])


def test_a_slot_without_a_run_is_missing(circle: Series, noon: datetime) -> None:
    expand(noon)
    Run.objects.filter(slot=noon + MINUTE).delete()
    assert audit(noon - DAY, noon + MINUTE).missing == [Finding("circle", noon + MINUTE, "has no run")]


def test_slots_that_no_tick_has_expanded_are_missing(circle: Series, noon: datetime) -> None:
    expand(noon)
    assert len(audit(noon - DAY, noon + 25 * 60 * MINUTE).missing) == 60


def test_slots_before_the_present_schedule_are_not_audited(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(schedule="*/2 * * * *")
    assert audit(noon - DAY, noon + 10 * MINUTE).slots == 0
    expand(noon + 10 * MINUTE)
    assert audit(noon - DAY, noon + 10 * MINUTE).missing == []


def test_a_run_with_two_outcomes_is_doubled(circle: Series, noon: datetime) -> None:
    expand(noon)
    run = Run.objects.get(slot=noon + MINUTE)
    transitions.move(Run.objects.all(), [run.pk], State.PASSED, cause="it ran")
    assert audit(noon - DAY, noon + MINUTE).doubled == []
    Transition.objects.create(
        run=run, source=State.PASSED, target=State.FAILED, at=timezone.now(), cause="a bug"
    )
    assert audit(noon - DAY, noon + MINUTE).doubled == [Finding("circle", noon + MINUTE, "has 2 outcomes")]


def test_a_late_report_is_no_second_outcome(circle: Series, noon: datetime) -> None:
    expand(noon)
    run = Run.objects.get(slot=noon + MINUTE)
    for state in (State.MISSED, State.PASSED):
        transitions.move(Run.objects.all(), [run.pk], state, cause="a test")
    assert audit(noon - DAY, noon + MINUTE).doubled == []


def test_runs_beyond_their_grace_time_or_lease_are_overdue(circle: Series, noon: datetime) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    result = audit(noon - DAY, noon + 5 * MINUTE)
    assert [finding.what for finding in result.overdue] == ["is still claimed", "is still expected"]
    assert Run.objects.get(pk=claim.run_id).slot == result.overdue[0].slot


@pytest.mark.usefixtures("circle")
def test_the_command_prints_the_counts_and_fails_if_there_are_findings(
    noon: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    now = timezone.now()
    Series.objects.update(created_at=now - MINUTE, schedule="* * * * *", enabled=True)
    expand(now - MINUTE)
    call_command("ledger", "audit")
    assert "0 missing, 0 doubled, 0 overdue" in capsys.readouterr().out
    Run.objects.all().delete()
    with pytest.raises(CommandError, match="differs from the schedules"):
        call_command("ledger", "audit")
    assert re.search(r"[1-9] missing, 0 doubled", capsys.readouterr().out)


@pytest.mark.django_db
def test_an_empty_period_is_refused() -> None:
    with pytest.raises(CommandError, match="--days"):
        call_command("ledger", "audit", "--days", "0")
