"""Requested runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from monitor.models import Run, Series
from monitor.runs.ledger.run_now import run_now
from reporters.report import run_id


def test_repeated_requests_return_the_same_waiting_run(circle: Series, noon: datetime) -> None:
    runs = {run_now(circle, who="ada", now=noon + timedelta(milliseconds=n)).pk for n in range(100)}
    assert len(runs) == Run.objects.count() == 1


def test_a_request_that_got_its_time_later_but_came_first_is_answered_with_the_same_run(
    circle: Series, noon: datetime
) -> None:
    first = run_now(circle, who="ada", now=noon + timedelta(milliseconds=1))
    assert run_now(circle, who="bob", now=noon) == first


def test_a_forced_run_at_the_time_of_another_request_is_a_run_of_its_own(
    circle: Series, noon: datetime
) -> None:
    requested = run_now(circle, who="ada", now=noon)
    forced = [run_now(circle, who="bob", why="hold", force=True, now=noon) for _ in range(2)]
    assert forced[0] == forced[1] != requested
    assert [requested.forced, forced[0].forced] == [False, True]
    assert forced[0].slot == noon + timedelta(microseconds=1)


def test_a_run_that_has_ended_is_not_returned_for_a_new_request(circle: Series, noon: datetime) -> None:
    """Not even the run of the schedule's slot, or of an earlier request, at the very time of the request."""
    ended = Run.objects.create(
        id=run_id(circle.name, noon), series=circle, slot=noon, due_at=noon, state="passed"
    )
    requested = run_now(circle, who="ada", now=noon)
    assert (requested.state, requested.trigger) == ("expected", "asked for by ada")
    assert requested != ended


def test_a_slot_of_a_series_has_one_run(circle: Series, noon: datetime) -> None:
    assert run_now(circle, who="ada", now=noon) == run_now(circle, who="bob", now=noon)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(id=run_id("other", noon), series=circle, slot=noon, due_at=noon)
