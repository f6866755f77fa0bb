"""Series that follow another: with it, right after it, half an hour later."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from monitor.models import Binding, Run, Series
from monitor.models.run import State
from monitor.models.series import Follows
from monitor.runs.ledger import transitions
from monitor.runs.ledger.audit import audit
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.reap import reap

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def following(leader: Series, follows: str, *, delay: timedelta = timedelta(0)) -> Series:
    series = Series.objects.create(
        suite=leader.suite, reporter=leader.reporter, name=f"follower-{follows}", probe=leader.probe,
        leader=leader, follows=follows, delay_seconds=delay.total_seconds(),
    )  # fmt: skip
    Binding.objects.bulk_create(
        Binding(series=series, role=binding.role, position=binding.position, resource=binding.resource)
        for binding in leader.bindings.all()
    )
    Series.objects.update(created_at=leader.created_at)
    return series


@pytest.fixture
def hourly(circle: Series) -> Series:
    Series.objects.update(schedule="0 * * * *")
    circle.refresh_from_db()
    return circle


def slots(series: Series) -> list[datetime]:
    return list(series.runs.order_by("slot").values_list("slot", flat=True))


def test_a_series_that_runs_with_another_has_its_slots(hourly: Series, noon: datetime) -> None:
    follower = following(hourly, Follows.WITH)
    expand(noon)
    assert slots(follower) == slots(hourly)
    assert len(claim_due(noon + HOUR)) == 2


def test_a_series_can_follow_with_a_delay(hourly: Series, noon: datetime) -> None:
    follower = following(hourly, Follows.WITH, delay=30 * MINUTE)
    expand(noon)
    assert slots(follower)[:2] == [noon + 30 * MINUTE, noon + 90 * MINUTE]
    assert audit(noon, noon + 20 * HOUR).missing == []


def test_the_slots_of_a_follower_are_hashed_from_the_name_of_its_leader(
    hourly: Series, noon: datetime
) -> None:
    follower = following(hourly, Follows.AFTER)
    Series.objects.filter(pk=hourly.pk).update(schedule="H * * * *")
    expand(noon)
    assert slots(follower) == slots(hourly)


def test_a_series_that_runs_after_another_waits_for_the_end_of_the_same_slot(
    hourly: Series, noon: datetime
) -> None:
    follower = following(hourly, Follows.AFTER, delay=5 * MINUTE)
    expand(noon)
    (first,) = claim_due(noon + HOUR)
    reap(noon + HOUR + 20 * MINUTE)  # it may wait longer than other slots
    transitions.move(
        Run.objects.all(), [first.run_id], State.FAILED, cause="it ran", ended_at=noon + HOUR + 20 * MINUTE
    )
    assert claim_due(noon + HOUR + 24 * MINUTE) == []
    (second,) = claim_due(noon + HOUR + 25 * MINUTE)
    assert second.run_id == follower.runs.get(slot=noon + HOUR).pk


def test_a_follower_of_a_missed_run_is_skipped(hourly: Series, noon: datetime) -> None:
    follower = following(hourly, Follows.AFTER)
    expand(noon)
    transitions.move(
        Run.objects.all(),
        [hourly.runs.get(slot=noon + HOUR).pk],
        State.MISSED,
        cause="its grace time was over",
    )
    assert claim_due(noon + HOUR) == []
    skipped = follower.runs.get(slot=noon + HOUR)
    assert (skipped.state, skipped.reason) == (State.SKIPPED, "leader: the leader did not run: missed")


def test_followers_are_expanded_again_when_the_schedule_of_their_leader_changes(
    hourly: Series, noon: datetime
) -> None:
    follower = following(hourly, Follows.WITH)
    expand(noon)
    Series.objects.filter(pk=hourly.pk).update(schedule="30 * * * *")
    expand(noon)
    assert slots(follower)[0] == noon + 30 * MINUTE
    Series.objects.filter(pk=hourly.pk).update(enabled=False)
    expand(noon)
    assert slots(follower) == []


def test_a_leader_needs_a_schedule_of_its_own(hourly: Series) -> None:
    follower = following(hourly, Follows.WITH)
    third = Series(suite=hourly.suite, name="third", leader=follower, follows=Follows.WITH)
    with pytest.raises(ValidationError, match="a schedule of its own"):
        third.clean()
    hourly.leader, hourly.follows, hourly.schedule = hourly, Follows.WITH, ""
    with pytest.raises(ValidationError, match="a schedule of its own"):
        hourly.clean()


@pytest.mark.parametrize("change", [{"schedule": "* * * * *"}, {"follows": ""}, {"leader": None}])
def test_the_database_refuses_an_inconsistent_leader(hourly: Series, change: dict[str, object]) -> None:
    follower = following(hourly, Follows.WITH)
    with pytest.raises(IntegrityError, match="series_has_a_schedule_or_follows"), transaction.atomic():
        Series.objects.filter(pk=follower.pk).update(**change)


@pytest.mark.parametrize(
    ("fields", "timing"),
    [
        ({"schedule": ""}, "only on demand"),
        ({"schedule": "@daily", "timezone": "Europe/Rome"}, "@daily Europe/Rome"),
        ({"leader": Series(name="gather"), "follows": "with"}, "with gather"),
        (
            {"leader": Series(name="gather"), "follows": "after", "delay_seconds": 1800},
            "after gather, 1800 s later",
        ),
    ],
)
def test_the_timing_of_a_series_is_described(fields: dict[str, object], timing: str) -> None:
    assert Series(**fields).timing == timing
