"""Holds: nothing of a paused or drained scope starts; user and reason are recorded."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from monitor import tick
from monitor.models import Binding, Hold, Identity, Resource, Run, Series, Site, Suite, Transition
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.ledger import heartbeats, transitions
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.holds import (
    AlreadyHeld,
    HoldError,
    InvalidRequest,
    NotHeld,
    RunHeld,
    UnknownScope,
    covering_holds,
    find_scope,
    hold,
    hold_progress,
    resume,
)
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_all, run_now
from monitor.runs.worker.run_claimed import run_claimed
from tests.monitor.web.accounts.identities import identity_of

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
SITE = Scope(HoldKind.SITE, "site-of-here")
SCOPES = [
    Scope(HoldKind.SERIES, "circle"),
    Scope(HoldKind.SUITE, "main"),
    SITE,
    Scope(HoldKind.REPORTER, "home"),
]


def held(scope: Scope, now: datetime, mode: HoldMode = HoldMode.PAUSE, until: datetime | None = None) -> Hold:
    return hold(scope, mode, who="ada", why="disk swap", now=now, until=until)


def ended_at(slot: datetime) -> tuple[str, str]:
    run = Run.objects.get(slot=slot)
    return run.state, run.reason


@pytest.fixture
def elsewhere(circle: Series) -> Series:
    """A series of another suite, at other sites than circle."""
    places = [
        Resource.objects.create(
            site=Site.objects.create(name=f"site-of-{name}"), name=name, scratch="/scratch"
        )
        for name in ("far", "away")
    ]
    series = Series.objects.create(
        name="elsewhere",
        suite=Suite.objects.create(name="other"),
        probe="circle",
        reporter=circle.reporter,
        schedule="* * * * *",
    )
    for position, place in enumerate(places):
        Binding.objects.create(series=series, role="ring", position=position, resource=place)
    Series.objects.update(created_at=circle.created_at)
    return series


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize(("mode", "word"), [(HoldMode.PAUSE, "paused"), (HoldMode.DRAIN, "drained")])
def test_slots_of_a_held_scope_are_skipped_when_they_are_due(
    circle: Series, noon: datetime, scope: Scope, mode: HoldMode, word: str
) -> None:
    expand(noon)
    held(scope, noon, mode)
    assert claim_due(noon + MINUTE) == []
    assert ended_at(noon + MINUTE) == (State.SKIPPED, f"{word} by ada: disk swap")
    assert ended_at(noon + 2 * MINUTE) == (State.EXPECTED, "")


@pytest.mark.parametrize("scope", SCOPES[:3], ids=str)
def test_series_outside_the_held_scope_go_on(elsewhere: Series, noon: datetime, scope: Scope) -> None:
    expand(noon)
    held(scope, noon)
    assert len(claim_due(noon + MINUTE)) == 1
    assert Run.objects.get(state=State.CLAIMED).series == elsewhere


def test_a_resumed_series_starts_with_its_next_slot(circle: Series, noon: datetime) -> None:
    expand(noon)
    held(SITE, noon)
    claim_due(noon + MINUTE)
    ended = resume(SITE, who="bob", why="new disks are in", now=noon + MINUTE)
    assert (ended.ended_by, ended.ended_why, ended.ended_at) == ("bob", "new disks are in", noon + MINUTE)
    assert len(claim_due(noon + 2 * MINUTE)) == 1


def test_a_series_is_free_only_when_no_hold_covers_it(circle: Series, noon: datetime) -> None:
    expand(noon)
    held(SITE, noon)
    held(SCOPES[0], noon)
    resume(SITE, who="ada", why="done", now=noon)
    assert claim_due(noon + MINUTE) == []
    resume(SCOPES[0], who="ada", why="done", now=noon + MINUTE)
    assert len(claim_due(noon + 2 * MINUTE)) == 1


def test_a_pause_takes_back_claimed_runs(circle: Series, noon: datetime) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    held(SITE, noon + MINUTE)
    run_claimed([claim.run_id])  # the broker still has its task
    assert ended_at(noon + MINUTE) == (State.SKIPPED, "paused by ada: disk swap")
    assert Transition.objects.latest("id").cause == "the site site-of-here was paused"


def test_a_drain_lets_claimed_runs_run(circle: Series, noon: datetime) -> None:
    expand(noon)
    claim_due(noon + MINUTE)
    held(SITE, noon + MINUTE, HoldMode.DRAIN)
    assert ended_at(noon + MINUTE) == (State.CLAIMED, "")


def test_a_running_run_counts_for_each_hold_over_it(circle: Series, noon: datetime) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    transitions.move(
        Run.objects.all(), [claim.run_id], State.RUNNING, cause="it began", started_at=noon + MINUTE
    )
    series = Scope(HoldKind.SERIES, circle.name)
    holds = [held(scope, noon + MINUTE, HoldMode.DRAIN) for scope in (SITE, series)]
    assert [progress.left for progress in hold_progress(holds)] == [1, 1]


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [(HoldMode.DRAIN, "draining, 1 left", "drained"), (HoldMode.PAUSE, "paused, 1 still to end", "paused")],
)
def test_running_runs_go_on_to_their_end_and_are_counted(
    circle: Series, noon: datetime, mode: HoldMode, before: str, after: str
) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    transitions.move(
        Run.objects.all(), [claim.run_id], State.RUNNING, cause="it began", started_at=noon + MINUTE
    )
    placed = held(SITE, noon + MINUTE, mode)
    assert ended_at(noon + MINUTE) == (State.RUNNING, "")
    assert hold_progress([placed])[0].words == before
    transitions.move(Run.objects.all(), [claim.run_id], State.PASSED, cause="it ran")
    assert hold_progress([placed])[0].words == after


def test_a_run_whose_executor_died_is_not_run_again_under_a_hold(circle: Series, noon: datetime) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    transitions.move(
        Run.objects.all(), [claim.run_id], State.RUNNING, cause="it began", started_at=noon + MINUTE
    )
    held(SITE, noon + MINUTE, HoldMode.DRAIN)
    reap(noon + MINUTE + 31 * SECOND)
    assert claim_due(noon + MINUTE + 31 * SECOND) == []
    assert ended_at(noon + MINUTE) == (State.SKIPPED, "drained by ada: disk swap")


def test_slots_of_a_paused_reporter_that_was_stopped_are_skipped_not_missed(
    circle: Series, noon: datetime
) -> None:
    heartbeats.record("reporter.home", noon)
    tick.tick(noon)
    held(Scope(HoldKind.REPORTER, "home"), noon)
    for seconds in range(0, 300, 15):
        tick.tick(noon + seconds * SECOND)
    assert set(Run.objects.filter(slot__lt=noon + 5 * MINUTE).values_list("state", flat=True)) == {
        State.SKIPPED
    }


def test_a_hold_ends_by_itself_at_its_time(circle: Series, noon: datetime) -> None:
    expand(noon)
    held(SITE, noon, until=noon + 1.5 * MINUTE)
    assert claim_due(noon + MINUTE) == []
    assert len(claim_due(noon + 2 * MINUTE)) == 1  # although its end is not recorded yet
    tick.tick(noon + 3 * MINUTE)
    ended = Hold.objects.get()
    assert (ended.ended_at, ended.ended_by) == (noon + 1.5 * MINUTE, "its time was over")


def test_holding_a_held_scope_is_refused_with_the_existing_hold(circle: Series, noon: datetime) -> None:
    held(SITE, noon)
    with pytest.raises(AlreadyHeld, match="paused by ada since 2026-03-01 12:00 UTC: disk swap"):
        hold(SITE, HoldMode.DRAIN, who="bob", why="me too", now=noon + MINUTE)


def test_a_scope_can_be_held_again_after_a_hold_ended(circle: Series, noon: datetime) -> None:
    held(SITE, noon, until=noon + MINUTE)
    held(SITE, noon + 2 * MINUTE)
    resume(SITE, who="ada", why="done", now=noon + 3 * MINUTE)
    held(SITE, noon + 4 * MINUTE)
    assert [hold.ended_by for hold in Hold.objects.all()] == ["", "ada", "its time was over"]


def test_a_scope_that_is_not_held_cannot_be_resumed(circle: Series, noon: datetime) -> None:
    with pytest.raises(NotHeld, match="the site site-of-here is not held"):
        resume(SITE, who="ada", why="done", now=noon)


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("", "got none"),
        (" \n ", "got none"),
        ("x" * 501, "at most 500 characters, got 501"),
        ("a\x00b", "NUL"),
    ],
)
def test_a_missing_or_invalid_reason_is_refused(
    circle: Series, noon: datetime, why: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        hold(SITE, HoldMode.PAUSE, who="ada", why=why, now=noon)
    assert not Hold.objects.exists()


def test_a_reason_is_stored_on_one_line(circle: Series, noon: datetime) -> None:
    assert hold(SITE, HoldMode.PAUSE, who="ada", why=" disk\n swap ", now=noon).why == "disk swap"


def test_a_hold_until_a_past_time_is_refused(circle: Series, noon: datetime) -> None:
    with pytest.raises(InvalidRequest, match="expected a time after 2026-03-01 12:00:00 UTC"):
        held(SITE, noon, until=noon)


@pytest.mark.parametrize(("kind", "name"), [("site", "nowhere"), ("planet", "earth"), ("site", "")])
def test_an_unknown_scope_cannot_be_held(circle: Series, kind: str, name: str) -> None:
    with pytest.raises(UnknownScope):
        find_scope(kind, name)


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_pauses_one_is_refused(circle: Series) -> None:
    now = timezone.now()

    def pause(who: str) -> str:
        try:
            return hold(SITE, HoldMode.PAUSE, who=who, why="disk swap", now=now).who
        except AlreadyHeld as error:
            return f"after {error.hold.who}"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = set(pool.map(pause, ["ada", "bob"]))
    first = Hold.objects.get().who
    assert answers == {first, f"after {first}"}


@pytest.mark.django_db(transaction=True)
def test_no_run_stays_claimed_when_a_claim_and_a_pause_are_concurrent(circle: Series) -> None:
    now = timezone.now()
    for number in range(30):
        circle.pk, circle.name = None, f"circle-{number}"
        circle.save()
        run_now(circle, who="bob", now=now)
    scope = Scope(HoldKind.REPORTER, "home")
    circle.reporter.capacity = 30
    circle.reporter.save()

    def do(action: str) -> None:
        try:
            claim_due(now + SECOND) if action == "claim" else held(scope, now + SECOND)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(do, ["claim", "pause"]))
    claim_due(now + 2 * SECOND)
    assert Counter(Run.objects.values_list("state", flat=True)) == {State.SKIPPED: 30}


def test_the_database_allows_one_open_hold_per_scope(circle: Series, noon: datetime) -> None:
    held(SITE, noon)
    fields = {"kind": "site", "name": SITE.name, "mode": "pause", "who": "bob", "why": "x", "began_at": noon}
    with pytest.raises(IntegrityError), transaction.atomic():
        Hold.objects.create(**fields)
    Hold.objects.create(**{**fields, "kind": "suite"})


def test_a_hold_follows_the_renaming_of_its_scope(circle: Series, noon: datetime) -> None:
    expand(noon)
    held(SITE, noon)
    Site.objects.filter(name=SITE.name).update(name="renamed")
    assert Hold.objects.get().name == "renamed"
    assert claim_due(noon + MINUTE) == []


def test_a_hold_ends_when_its_scope_is_deleted(circle: Series, noon: datetime) -> None:
    Site.objects.create(name="closing")
    placed = held(Scope(HoldKind.SITE, "closing"), noon)
    Site.objects.filter(name="closing").delete()
    placed.refresh_from_db()
    assert placed.ended_at is not None
    assert placed.ended_by == "it was removed"


def test_a_requested_run_of_a_held_series_is_refused_with_the_hold(circle: Series, noon: datetime) -> None:
    held(SITE, noon)
    with pytest.raises(RunHeld, match=r"the site site-of-here is paused by ada since .*: disk swap"):
        run_now(circle, who="bob", now=noon + MINUTE)
    assert not Run.objects.exists()


def test_a_forced_run_starts_in_spite_of_the_hold(circle: Series, noon: datetime) -> None:
    held(SITE, noon)
    run = run_now(circle, who="bob", why="is it repaired?", force=True, now=noon + MINUTE)
    assert [claim.run_id for claim in claim_due(noon + MINUTE)] == [run.pk]
    assert run.trigger == "asked for by bob: is it repaired?"


def test_a_hold_placed_after_a_forced_run_stops_it(circle: Series, noon: datetime) -> None:
    held(SITE, noon)
    run_now(circle, who="bob", force=True, now=noon + SECOND)
    held(Scope(HoldKind.SUITE, "main"), noon + 2 * SECOND)
    assert claim_due(noon + MINUTE) == []
    assert Run.objects.get().state == State.SKIPPED


def test_forcing_does_not_return_a_waiting_run_that_a_hold_will_skip(circle: Series, noon: datetime) -> None:
    waiting = run_now(circle, who="ada", now=noon)
    held(SITE, noon + SECOND)
    forced = run_now(circle, who="bob", force=True, now=noon + 2 * SECOND)
    assert forced != waiting
    assert [claim.run_id for claim in claim_due(noon + 2 * SECOND)] == [forced.pk]


@pytest.mark.parametrize("scope", SCOPES[1:], ids=str)
def test_runs_of_a_whole_scope_can_be_requested(elsewhere: Series, noon: datetime, scope: Scope) -> None:
    requested = run_all(scope, who="ada", why="after the upgrade", now=noon)
    names = ["circle", "elsewhere"] if scope.kind == HoldKind.REPORTER else ["circle"]
    assert [run.series.name for run in requested.runs] == names
    assert requested.runs[0].trigger == f"asked for by ada for the {scope}: after the upgrade"


def test_requesting_a_scope_passes_over_held_series(elsewhere: Series, noon: datetime) -> None:
    held(SITE, noon)
    scope = Scope(HoldKind.REPORTER, "home")
    requested = run_all(scope, who="ada", why="x", now=noon)
    assert [run.series.name for run in requested.runs] == ["elsewhere"]
    assert [(series.name, hold.scope) for series, hold in requested.held] == [("circle", SITE)]
    forced = run_all(scope, who="ada", why="x", now=noon, force=True)
    assert [run.series.name for run in forced.runs] == ["circle", "elsewhere"]
    assert not forced.held


@pytest.mark.parametrize("change", [{"enabled": False}, {"enabled": True}])
def test_requesting_a_scope_without_free_series_is_refused(
    circle: Series, noon: datetime, change: dict[str, bool]
) -> None:
    Series.objects.update(**change)
    held(SITE, noon)
    with pytest.raises(HoldError, match=r"paused|no enabled series"):
        run_all(SITE, who="ada", why="x", now=noon)


def test_the_oldest_hold_that_covers_a_series_is_named(circle: Series, noon: datetime) -> None:
    first = held(SITE, noon)
    held(SCOPES[0], noon + SECOND)
    assert covering_holds([circle.pk], Hold.objects.at(noon + MINUTE)) == {circle.pk: first}


def test_a_hold_of_a_suspended_identity_is_not_in_force_until_it_is_admitted_again(
    circle: Series, noon: datetime
) -> None:
    ada = User.objects.create_user("ada")
    identity = identity_of(ada, "operator", verified_at=noon, valid_until=noon + 3 * MINUTE)
    made = hold(SCOPES[0], HoldMode.PAUSE, who="ada", why="disk swap", now=noon, identity=identity.pk)
    assert list(Hold.objects.at(noon)) == [made]
    Identity.objects.update(suspended="no group", suspended_at=noon + MINUTE)
    assert not Hold.objects.at(noon + MINUTE).exists()
    assert list(Hold.objects.covering(noon)) == [made], "it was in force then"
    assert not Hold.objects.covering(noon + 2 * MINUTE).exists()
    Identity.objects.update(suspended="", suspended_at=None)
    assert list(Hold.objects.at(noon + MINUTE)) == [made]
    assert not Hold.objects.at(noon + 4 * MINUTE).exists(), "no login for long"
    Identity.objects.update(valid_until=timezone.now() + MINUTE)
    Identity.objects.all().delete()
    assert list(Hold.objects.at(noon + 4 * MINUTE)) == [made], "a statement about the grid"


def test_another_hold_replaces_that_of_a_suspended_identity(circle: Series, noon: datetime) -> None:
    identity = identity_of(User.objects.create_user("ada"), "operator", suspended="no group")
    old = Hold.objects.create(
        kind="series", name="circle", mode="pause", who="ada", why="x", began_at=noon, identity=identity
    )
    new = held(SCOPES[0], noon + MINUTE)
    old.refresh_from_db()
    assert (old.ended_by, list(Hold.objects.at(noon + MINUTE))) == ("ada", [new])
    assert old.ended_why == "replaced: the identity of its author is suspended"


def test_a_suspended_hold_is_ended_for_good(circle: Series, noon: datetime) -> None:
    identity = identity_of(User.objects.create_user("ada"), "operator", suspended="no group")
    Hold.objects.create(
        kind="series", name="circle", mode="pause", who="ada", why="x", began_at=noon, identity=identity
    )
    resume(SCOPES[0], who="bob", why="over", now=noon + MINUTE)
    assert not Hold.objects.filter(ended_at=None).exists()
