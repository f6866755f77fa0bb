"""May this run begin now? Tables of cases, no database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from monitor.ledger.admission import (
    ActiveHold,
    AdmissionContext,
    Budget,
    BudgetUsed,
    Demand,
    DueRun,
    LeaderRun,
    OpenWindow,
    Skip,
    Verdict,
    Wait,
    decide,
    rules,
)
from monitor.ledger.admission.rules import budget as budgets
from monitor.ledger.admission.rules import exclusive, hold, leader, maintenance, overlap, room, silent

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def demand(series: str, *sites: str, exclusive: str = "", reporter: str = "home") -> Demand:
    return Demand(series, "main", reporter, frozenset(sites), exclusive)  # type: ignore[arg-type]


def candidate(of: Demand, *, due_at: datetime = NOON, asked: bool = False, again: bool = False) -> DueRun:
    return DueRun(uuid.uuid4(), of, due_at, asked, again)


def during(*in_flight: Demand, now: datetime = NOON, capacity: int = 100, **limits: int) -> AdmissionContext:
    return AdmissionContext(now, list(in_flight), {"home": capacity}, limits)


GATHER = demand("gather", "sdsc", "ncsa")


@pytest.mark.parametrize("name", rules.names())
def test_a_rule_has_nothing_against_a_run_when_nothing_else_is_going_on(name: str) -> None:
    (rule,) = (rule for rule in rules.load_all().values() if rule.__module__.endswith(f".{name}"))
    assert rule(candidate(GATHER), during()) is None


def test_every_file_of_the_folder_is_a_rule() -> None:
    assert len(rules.load_all().values()) == len(rules.names()) >= 4


@pytest.mark.parametrize(
    ("of", "verdict"),
    [
        (candidate(GATHER), Skip),
        (candidate(GATHER, asked=True), Wait),
        (candidate(GATHER, again=True), Wait),
        (candidate(demand("circle", "sdsc", "ncsa")), type(None)),
    ],
)
def test_two_runs_of_a_series_are_never_at_the_same_time(of: DueRun, verdict: type[object]) -> None:
    assert isinstance(overlap.judge(of, during(GATHER)), verdict)


def test_a_reporter_without_room_lets_wait() -> None:
    verdict = room.judge(candidate(demand("circle")), during(GATHER, capacity=1))
    assert verdict == Wait("queued: room: the reporter home has 1 runs already")


def test_a_reporter_that_is_not_known_has_no_room() -> None:
    assert room.judge(candidate(demand("circle", reporter="away")), during()) is not None


def test_a_site_with_a_limit_lets_wait_who_would_exceed_it() -> None:
    circle = candidate(demand("circle", "sdsc", "anl"))
    assert room.judge(circle, during(GATHER, sdsc=2)) is None
    assert room.judge(circle, during(GATHER, ncsa=1)) is None
    assert room.judge(circle, during(GATHER, sdsc=1)) == Wait(
        "queued: room: the site sdsc takes part in 1 runs already"
    )


@pytest.mark.parametrize(
    ("one", "its_sites", "other", "other_sites", "together"),
    [
        ("", "ab", "", "ab", True),
        ("site", "ab", "", "ab", True),
        ("site", "ab", "site", "bc", False),
        ("site", "ab", "site", "cd", True),
        ("link", "ab", "link", "bc", True),
        ("link", "ab", "link", "abc", False),
        ("link", "ab", "site", "bc", False),
        ("site", "ab", "link", "bc", False),
    ],
)
def test_exclusive_series_share_no_site_or_no_link(
    one: str, its_sites: str, other: str, other_sites: str, together: bool
) -> None:
    under_way = demand("other", *other_sites, exclusive=other)
    verdict = exclusive.judge(candidate(demand("one", *its_sites, exclusive=one)), during(under_way))
    assert (verdict is None) == together


@pytest.mark.parametrize(
    ("minutes", "asked", "verdict"),
    [
        (0, False, Wait("queued: exclusive: rival uses what it needs alone", NOON + 15 * MINUTE)),
        (14, False, Wait("queued: exclusive: rival uses what it needs alone", NOON + 15 * MINUTE)),
        (15, False, Skip("busy: rival used what it needs alone for 900 s")),
        (15, True, Wait("queued: exclusive: rival uses what it needs alone", NOON + 15 * MINUTE)),
    ],
)
def test_waiting_for_what_is_exclusive_is_bounded_for_slots(
    minutes: int, asked: bool, verdict: Verdict
) -> None:
    rival = demand("rival", "a", exclusive="site")
    waiting = candidate(demand("one", "a", exclusive="site"), asked=asked)
    assert exclusive.judge(waiting, during(rival, now=NOON + minutes * MINUTE)) == verdict


@pytest.mark.parametrize(
    ("sites", "after_minutes", "asked", "skipped"),
    [
        ({"sdsc"}, 0, False, True),
        (set(), 0, False, True),
        ({"anl"}, 0, False, False),
        ({"sdsc"}, -1, False, False),
        ({"sdsc"}, 59, False, True),
        ({"sdsc"}, 60, False, False),
        ({"sdsc"}, 0, True, False),
    ],
)
def test_no_slot_begins_during_a_blackout_of_its_sites(
    sites: set[str], after_minutes: int, asked: bool, skipped: bool
) -> None:
    window = OpenWindow("new disks", NOON, NOON + 60 * MINUTE, frozenset(sites))
    situation = AdmissionContext(NOON + after_minutes * MINUTE, windows=(window,))
    verdict = maintenance.judge(candidate(GATHER, asked=asked), situation)
    assert verdict == (Skip("maintenance: new disks, until 2026-03-01 13:00 UTC") if skipped else None)


@pytest.mark.parametrize(
    ("ran", "ended_minutes_ago", "delay_minutes", "verdict"),
    [
        (None, None, 0, Wait("queued: leader: gather has not ended", NOON + timedelta(days=1))),
        (True, 0, 0, None),
        (True, 29, 30, Wait("queued: leader: 12:01:00 UTC is its time, after gather", NOON + MINUTE)),
        (True, 30, 30, None),
        (False, None, 0, Skip("leader: gather did not run: passed")),
    ],
)
def test_a_follower_begins_after_the_end_of_its_leader(
    ran: bool | None, ended_minutes_ago: int | None, delay_minutes: int, verdict: Verdict
) -> None:
    ended_at = None if ended_minutes_ago is None else NOON - ended_minutes_ago * MINUTE
    before = LeaderRun("gather", delay_minutes * MINUTE, ran, "passed", ended_at)
    following = DueRun(uuid.uuid4(), demand("preco", "sdsc"), NOON, leader=before)
    assert leader.judge(following, during()) == verdict


@pytest.mark.parametrize(
    ("kind", "name", "skipped"),
    [
        ("series", "gather", True),
        ("series", "gather-2", False),
        ("series", "sdsc", False),
        ("suite", "main", True),
        ("suite", "other", False),
        ("site", "sdsc", True),
        ("site", "anl", False),
        ("reporter", "home", True),
        ("reporter", "away", False),
    ],
)
@pytest.mark.parametrize("asked", [False, True])
def test_nothing_begins_of_what_is_held(kind: str, name: str, skipped: bool, asked: bool) -> None:
    held = ActiveHold(kind, name, NOON, "paused by ada: disk swap")  # type: ignore[arg-type]
    verdict = hold.judge(candidate(GATHER, asked=asked), AdmissionContext(NOON, holds=(held,)))
    assert verdict == (Skip("paused by ada: disk swap") if skipped else None)


@pytest.mark.parametrize(
    ("holds_began_at", "verdict"),
    [
        ([], None),
        ([NOON - MINUTE], None),
        ([NOON], None),
        ([NOON + MINUTE], Skip("paused by ada: 0")),
        ([NOON - MINUTE, NOON + MINUTE], Skip("paused by ada: 1")),
    ],
)
def test_a_forced_run_passes_the_holds_that_were_there_before_it(
    holds_began_at: list[datetime], verdict: Verdict
) -> None:
    holds = [ActiveHold("site", "sdsc", at, f"paused by ada: {n}") for n, at in enumerate(holds_began_at)]
    forced = DueRun(uuid.uuid4(), GATHER, NOON, asked=True, forced=True)
    assert hold.judge(forced, AdmissionContext(NOON + 2 * MINUTE, holds=tuple(holds))) == verdict


def test_a_reporter_that_is_silent_is_given_nothing_but_its_held_slots_are_skipped() -> None:
    quiet = AdmissionContext(NOON, [], {"home": 9}, silent_reporters=frozenset({"home"}))
    said = "queued: silent: the reporter home is not heard of"
    assert silent.judge(candidate(GATHER), quiet) == Wait(said)
    assert silent.judge(candidate(demand("circle", reporter="away")), quiet) is None
    quiet.holds = (ActiveHold("site", "sdsc", NOON, "paused by ada: disk swap"),)
    assert judged([candidate(GATHER), candidate(demand("circle", "anl"))], quiet) == [
        ("gather", Skip),
        ("circle", Wait),
    ]


def judged(candidates: Sequence[DueRun], situation: AdmissionContext) -> list[tuple[str, type[object]]]:
    decided = decide(candidates, situation, rules.load_all().values())
    return [(one.demand.series, type(verdict)) for one, verdict in decided]


def test_who_is_let_in_takes_room_from_who_comes_after() -> None:
    wanted = [candidate(demand(name, "sdsc", exclusive="site")) for name in ("first", "second")]
    assert judged(wanted, during()) == [("first", type(None)), ("second", Wait)]


def test_two_slots_of_a_series_that_are_due_at_once_are_one_run() -> None:
    wanted = [candidate(GATHER), candidate(GATHER, due_at=NOON - MINUTE)]
    assert judged(wanted, during()) == [("gather", type(None)), ("gather", Skip)]


def test_what_is_skipped_takes_no_room_and_skipping_weighs_more_than_waiting() -> None:
    blackouts = (OpenWindow("new disks", NOON, NOON + MINUTE, frozenset({"sdsc"})),)
    situation = AdmissionContext(NOON, [GATHER], {"home": 2}, {}, blackouts)
    wanted = [candidate(demand("circle", "sdsc")), candidate(demand("disk", "anl"))]
    assert judged(wanted, situation) == [("circle", Skip), ("disk", type(None))]
    full = AdmissionContext(NOON, [GATHER], {"home": 1}, {}, blackouts)
    assert judged(wanted, full) == [("circle", Skip), ("disk", Wait)]


GB = 10**9


@pytest.mark.parametrize(
    ("budget", "spent", "reason"),
    [
        (Budget(), BudgetUsed(10**6, 10**18, 1e6), None),
        (Budget(runs=2), BudgetUsed(runs=1), None),
        (Budget(runs=2), BudgetUsed(runs=2), "taken part in 2 of 2 runs"),
        (Budget(runs=0), BudgetUsed(), "taken part in 0 of 0 runs"),
        (Budget(bytes=10 * GB), BudgetUsed(9, 10 * GB - 1, 99.0), None),
        (Budget(bytes=10 * GB), BudgetUsed(bytes=12 * GB), "moved 12.0 GB of 10.0 GB"),
        (Budget(cpu_hours=1.5), BudgetUsed(9, 99 * GB, 1.4), None),
        (Budget(cpu_hours=1.5), BudgetUsed(cpu_hours=1.625), "computed 1.62 of 1.50 CPU-hours"),
        (Budget(1, 1, 1.0), BudgetUsed(1, 1, 1.0), "taken part in 1 of 1 runs"),
    ],
)
def test_a_site_takes_part_in_no_run_after_its_budget_is_spent_whoever_asks(
    budget: Budget, spent: BudgetUsed, reason: str | None
) -> None:
    situation = AdmissionContext(NOON, budgets={"sdsc": budget}, spent={"sdsc": spent})
    skip = Skip(f"budget: sdsc has {reason} today") if reason else None
    assert budgets.judge(candidate(GATHER), situation) == skip
    assert budgets.judge(candidate(GATHER, asked=True), situation) == skip
    assert budgets.judge(candidate(demand("circle", "anl", "iu")), situation) is None


def test_runs_in_flight_and_runs_just_let_in_count_against_the_budget() -> None:
    situation = AdmissionContext(NOON, [GATHER], {"home": 9}, budgets={"sdsc": Budget(runs=2)})
    wanted = [candidate(demand(name, "sdsc")) for name in ("circle", "disk")]
    assert judged(wanted, situation) == [("circle", type(None)), ("disk", Skip)]


def test_what_is_let_in_counts_for_its_series_its_reporter_and_each_of_its_sites() -> None:
    situation = during(GATHER, demand("circle", "sdsc", exclusive="link", reporter="away"))
    situation.let_in(demand("gather", "sdsc"))
    assert [situation.runs_of_series(name) for name in ("gather", "circle", "preco")] == [2, 1, 0]
    assert [situation.runs_of_reporter(name) for name in ("home", "away", "none")] == [2, 1, 0]
    assert [situation.runs_at_site(name) for name in ("sdsc", "ncsa", "tacc")] == [3, 1, 0]
    assert [one.series for one in situation.exclusive_in_flight] == ["circle"]


def test_who_comes_first_takes_the_room_and_whoever_has_to_wait_takes_none() -> None:
    wanted = [candidate(demand(f"s{number}", site)) for number, site in enumerate("aabab")]
    verdicts = [verdict for _, verdict in decide(wanted, during(capacity=3, a=1), [room.judge])]
    assert [verdict is None for verdict in verdicts] == [True, False, True, False, True]
