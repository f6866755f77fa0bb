"""Rounds of runs, and the lines that the demo prints about ended runs."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from monitor.models import Run, Series
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.holds import hold, resume
from monitor.runs.ledger.run_now import run_now
from monitor.testbed.demo.ended_runs import EndedRuns
from monitor.testbed.demo.rounds import Rounds
from monitor.testbed.demo.session import run_all_now
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db


def test_rounds_begin_when_the_runs_of_an_earlier_demo_have_ended(circle: Series) -> None:
    now = timezone.now()
    left = run_now(circle, who="an earlier demo", now=now - MINUTE)
    claim_due(now)
    rounds = Rounds([circle], 1)
    assert not rounds.advance(now)
    assert rounds.requested == {}
    transitions.move(Run.objects.all(), [left.pk], State.PASSED, cause="it ran")
    assert not rounds.advance(now)
    (requested,) = rounds.requested
    transitions.move(Run.objects.all(), [requested], State.FAILED, cause="it ran")
    assert rounds.advance(now)


def test_a_round_begins_when_the_slowest_series_has_ended_the_one_before(circle: Series) -> None:
    now = timezone.now()
    quick = builders.circle("other-ring", builders.sites(2))
    rounds = Rounds([circle, quick], 2)
    assert not rounds.advance(now)
    pending = {name: pk for pk, name in rounds.requested.items()}
    transitions.move(Run.objects.all(), [pending[quick.name]], State.PASSED, cause="it ran")
    assert not rounds.advance(now)
    assert len(rounds.requested) == 2
    transitions.move(Run.objects.all(), [pending[circle.name]], State.PASSED, cause="it ran")
    assert not rounds.advance(now)
    assert Counter(rounds.requested.values()) == {circle.name: 2, quick.name: 2}


def test_a_demo_starts_with_a_series_that_is_still_paused(circle: Series) -> None:
    start = timezone.now().replace(second=0)
    scope = Scope(HoldKind.SERIES, circle.name)
    hold(scope, HoldMode.PAUSE, who="ada", why="new disks", now=start)
    run_all_now(start)
    assert not Run.objects.exists()
    resume(scope, who="ada", why="they work", now=start)
    run_all_now(start)
    assert Run.objects.get().series == circle


def test_rounds_leave_out_a_paused_series_until_it_is_resumed(circle: Series) -> None:
    now = timezone.now()
    other = builders.circle("other-ring", builders.sites(2))
    scope = Scope(HoldKind.SERIES, circle.name)
    hold(scope, HoldMode.PAUSE, who="ada", why="new disks", now=now)
    rounds = Rounds([circle, other], 1)
    assert not rounds.advance(now)
    assert list(rounds.requested.values()) == [other.name]
    assert "new disks" in rounds.held[circle.name]
    transitions.move(Run.objects.all(), [*rounds.requested], State.PASSED, cause="it ran")
    assert rounds.advance(now)
    resume(scope, who="ada", why="they work", now=now)
    assert not rounds.advance(now)
    assert list(rounds.requested.values()) == [other.name, circle.name]
    assert not rounds.held


def test_every_ended_run_is_printed_once_even_if_it_ends_late(circle: Series) -> None:
    begin = timezone.now() - 10 * MINUTE
    ended_runs = EndedRuns(begin)
    slow, quick = begin + MINUTE, begin + 2 * MINUTE
    run_now(circle, who="ada", now=slow)
    lines = []
    for slot in (quick, slow):
        ingest(wire.to_json(circle_report(slot)))
        lines.append([line[:8] for line in ended_runs.new_lines()])
    assert lines == [[f"{slot + timedelta(seconds=7):%H:%M:%S}"] for slot in (quick, slow)]
    assert ended_runs.new_lines() == []
