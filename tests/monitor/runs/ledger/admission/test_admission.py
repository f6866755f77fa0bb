"""The admission rules, as tables of cases; no database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from monitor.runs.ledger.admission import (
    ActiveHold,
    AdmissionContext,
    Budget,
    BudgetUsed,
    Demand,
    DueRun,
    LeaderRun,
    Skip,
    Verdict,
    Wait,
    decide,
    rules,
)
from monitor.runs.ledger.admission.rules import budget as budgets
from monitor.runs.ledger.admission.rules import exclusive, hold, leader, maintenance, overlap, room, silent
from monitor.runs.maintenance.times import OpenWindow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def demand(series: str, *sites: str, exclusive: str = "", reporter: str = "home") -> Demand:
    return Demand(series, "main", reporter, frozenset(sites), exclusive)  # type: ignore[arg-type]


def due_run(
    demand: Demand, *, due_at: datetime = NOON, is_requested: bool = False, is_reclaimed: bool = False
) -> DueRun:
    return DueRun(uuid.uuid4(), demand, due_at, is_requested, is_reclaimed)


def context(*in_flight: Demand, now: datetime = NOON, capacity: int = 100, **limits: int) -> AdmissionContext:
    return AdmissionContext(now, list(in_flight), {"home": capacity}, limits)


GATHER = demand("gather", "sdsc", "ncsa")


@pytest.mark.parametrize("name", rules.names())
def test_no_rule_objects_to_a_run_on_an_idle_grid(name: str) -> None:
    (rule,) = (rule for rule in rules.in_order() if rule.__module__.endswith(f".{name}"))
    assert rule(due_run(GATHER), context()) is None


def test_every_file_of_the_folder_is_a_rule() -> None:
    assert len(rules.in_order()) == len(rules.names()) >= 4


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (due_run(GATHER), Skip),
        (due_run(GATHER, is_requested=True), Wait),
        (due_run(GATHER, is_reclaimed=True), Wait),
        (due_run(demand("circle", "sdsc", "ncsa")), type(None)),
    ],
)
def test_two_runs_of_a_series_never_overlap(run: DueRun, verdict: type[object]) -> None:
    assert isinstance(overlap.judge(run, context(GATHER)), verdict)


def test_a_run_waits_while_its_reporter_has_no_free_capacity() -> None:
    verdict = room.judge(due_run(demand("circle")), context(GATHER, capacity=1))
    assert verdict == Wait("queued: room: the reporter home already has 1 runs")


def test_an_unknown_reporter_has_no_capacity() -> None:
    assert room.judge(due_run(demand("circle", reporter="away")), context()) is not None


def test_a_run_waits_while_it_would_exceed_the_limit_of_a_site() -> None:
    circle = due_run(demand("circle", "sdsc", "anl"))
    assert room.judge(circle, context(GATHER, sdsc=2)) is None
    assert room.judge(circle, context(GATHER, ncsa=1)) is None
    assert room.judge(circle, context(GATHER, sdsc=1)) == Wait(
        "queued: room: the site sdsc already takes part in 1 runs"
    )


@pytest.mark.parametrize(
    ("exclusive_of_run", "sites", "exclusive_of_other", "other_sites", "may_overlap"),
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
    exclusive_of_run: str, sites: str, exclusive_of_other: str, other_sites: str, may_overlap: bool
) -> None:
    other = demand("other", *other_sites, exclusive=exclusive_of_other)
    run = due_run(demand("one", *sites, exclusive=exclusive_of_run))
    assert (exclusive.judge(run, context(other)) is None) == may_overlap


@pytest.mark.parametrize(
    ("minutes", "is_requested", "verdict"),
    [
        (0, False, Wait("queued: exclusive: another series is using a", NOON + 15 * MINUTE)),
        (14, False, Wait("queued: exclusive: another series is using a", NOON + 15 * MINUTE)),
        (15, False, Skip("busy: another series used a for 900 s")),
        (15, True, Wait("queued: exclusive: another series is using a", NOON + 15 * MINUTE)),
    ],
)
def test_only_requested_runs_wait_longer_than_exclusive_wait(
    minutes: int, is_requested: bool, verdict: Verdict
) -> None:
    rival = demand("rival", "a", exclusive="site")
    waiting = due_run(demand("one", "a", exclusive="site"), is_requested=is_requested)
    assert exclusive.judge(waiting, context(rival, now=NOON + minutes * MINUTE)) == verdict


@pytest.mark.parametrize(
    ("sites", "after_minutes", "is_requested", "is_skipped"),
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
def test_slots_are_skipped_during_a_maintenance_window_of_their_sites(
    sites: set[str], after_minutes: int, is_requested: bool, is_skipped: bool
) -> None:
    window = OpenWindow("new disks", NOON, NOON + 60 * MINUTE, frozenset(sites))
    at = AdmissionContext(NOON + after_minutes * MINUTE, windows=(window,))
    verdict = maintenance.judge(due_run(GATHER, is_requested=is_requested), at)
    assert verdict == (Skip("maintenance: new disks, until 2026-03-01 13:00 UTC") if is_skipped else None)


@pytest.mark.parametrize(
    ("ran", "ended_minutes_ago", "delay_minutes", "verdict"),
    [
        (None, None, 0, Wait("queued: leader: the leader has not ended", NOON + timedelta(days=1))),
        (True, 0, 0, None),
        (True, 29, 30, Wait("queued: leader: starts at 12:01:00 UTC, after the leader", NOON + MINUTE)),
        (True, 30, 30, None),
        (False, None, 0, Skip("leader: the leader did not run: passed")),
    ],
)
def test_a_follower_starts_after_the_end_of_its_leader(
    ran: bool | None, ended_minutes_ago: int | None, delay_minutes: int, verdict: Verdict
) -> None:
    ended_at = None if ended_minutes_ago is None else NOON - ended_minutes_ago * MINUTE
    leader_run = LeaderRun(delay_minutes * MINUTE, ran, "passed", ended_at)
    follower = DueRun(uuid.uuid4(), demand("preco", "sdsc"), NOON, leader=leader_run)
    assert leader.judge(follower, context()) == verdict


@pytest.mark.parametrize(
    ("kind", "name", "is_skipped"),
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
@pytest.mark.parametrize("is_requested", [False, True])
def test_runs_of_a_held_scope_are_skipped(kind: str, name: str, is_skipped: bool, is_requested: bool) -> None:
    active = ActiveHold(kind, name, NOON, "paused by ada: disk swap")  # type: ignore[arg-type]
    verdict = hold.judge(due_run(GATHER, is_requested=is_requested), AdmissionContext(NOON, holds=(active,)))
    assert verdict == (Skip("paused by ada: disk swap") if is_skipped else None)


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
def test_a_forced_run_passes_only_the_holds_placed_before_it(
    holds_began_at: list[datetime], verdict: Verdict
) -> None:
    holds = [ActiveHold("site", "sdsc", at, f"paused by ada: {n}") for n, at in enumerate(holds_began_at)]
    forced = DueRun(uuid.uuid4(), GATHER, NOON, is_requested=True, is_forced=True)
    assert hold.judge(forced, AdmissionContext(NOON + 2 * MINUTE, holds=tuple(holds))) == verdict


def test_runs_of_a_silent_reporter_wait_unless_they_are_held() -> None:
    silence = AdmissionContext(NOON, [], {"home": 9}, silent_reporters=frozenset({"home"}))
    reason = "queued: silent: the reporter home sends no heartbeats"
    assert silent.judge(due_run(GATHER), silence) == Wait(reason)
    assert silent.judge(due_run(demand("circle", reporter="away")), silence) is None
    silence.holds = (ActiveHold("site", "sdsc", NOON, "paused by ada: disk swap"),)
    assert verdicts([due_run(GATHER), due_run(demand("circle", "anl"))], silence) == [
        ("gather", Skip),
        ("circle", Wait),
    ]


def verdicts(runs: Sequence[DueRun], at: AdmissionContext) -> list[tuple[str, type[object]]]:
    decided = decide(runs, at, rules.in_order())
    return [(run.demand.series, type(verdict)) for run, verdict in decided]


def test_an_admitted_run_takes_capacity_from_later_ones() -> None:
    runs = [due_run(demand(name, "sdsc", exclusive="site")) for name in ("first", "second")]
    assert verdicts(runs, context()) == [("first", type(None)), ("second", Wait)]


def test_of_two_due_slots_of_a_series_one_is_admitted() -> None:
    runs = [due_run(GATHER), due_run(GATHER, due_at=NOON - MINUTE)]
    assert verdicts(runs, context()) == [("gather", type(None)), ("gather", Skip)]


def test_a_skipped_run_takes_no_capacity_and_skip_outweighs_wait() -> None:
    windows = (OpenWindow("new disks", NOON, NOON + MINUTE, frozenset({"sdsc"})),)
    grid = AdmissionContext(NOON, [GATHER], {"home": 2}, {}, windows)
    runs = [due_run(demand("circle", "sdsc")), due_run(demand("disk", "anl"))]
    assert verdicts(runs, grid) == [("circle", Skip), ("disk", type(None))]
    full = AdmissionContext(NOON, [GATHER], {"home": 1}, {}, windows)
    assert verdicts(runs, full) == [("circle", Skip), ("disk", Wait)]


GB = 10**9


@pytest.mark.parametrize(
    ("budget", "used", "reason"),
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
def test_every_run_is_skipped_when_the_budget_of_a_site_is_used_up(
    budget: Budget, used: BudgetUsed, reason: str | None
) -> None:
    grid = AdmissionContext(NOON, budgets={"sdsc": budget}, used={"sdsc": used})
    skip = Skip(f"budget: sdsc has {reason} today") if reason else None
    assert budgets.judge(due_run(GATHER), grid) == skip
    assert budgets.judge(due_run(GATHER, is_requested=True), grid) == skip
    assert budgets.judge(due_run(demand("circle", "anl", "iu")), grid) is None


def test_runs_in_flight_and_runs_just_admitted_count_against_the_budget() -> None:
    grid = AdmissionContext(NOON, [GATHER], {"home": 9}, budgets={"sdsc": Budget(runs=2)})
    runs = [due_run(demand(name, "sdsc")) for name in ("circle", "disk")]
    assert verdicts(runs, grid) == [("circle", type(None)), ("disk", Skip)]


def test_an_admitted_run_counts_for_its_series_its_reporter_and_each_of_its_sites() -> None:
    grid = context(GATHER, demand("circle", "sdsc", exclusive="link", reporter="away"))
    grid.admit(demand("gather", "sdsc"))
    assert [grid.runs_of_series(name) for name in ("gather", "circle", "preco")] == [2, 1, 0]
    assert [grid.runs_of_reporter(name) for name in ("home", "away", "none")] == [2, 1, 0]
    assert [grid.runs_at_site(name) for name in ("sdsc", "ncsa", "tacc")] == [3, 1, 0]
    assert [demand.series for demand in grid.exclusive_in_flight] == ["circle"]


def test_earlier_runs_take_the_capacity_and_waiting_runs_take_none() -> None:
    runs = [due_run(demand(f"s{number}", site)) for number, site in enumerate("aabab")]
    admitted = [verdict is None for _, verdict in decide(runs, context(capacity=3, a=1), [room.judge])]
    assert admitted == [True, False, True, False, True]
