from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reporters.remote.agent.admission import START, WAIT, LeaderEnd, SiteRun, SiteState, SiteVerdict, judge
from reporters.remote.assignment import SiteAssignment, parse
from tests.reporters.remote.assignments import RESOURCE, assignment, series

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
WINDOW = {"series": ["a"], "starts_at": "2026-11-23T11:00:00Z", "ends_at": None, "reason": "new switch"}


def bound(name: str, *resources: str, **changes: Any) -> dict[str, Any]:
    return series(name, bindings={"target": list(resources)}, **changes)


ASSIGNMENT = parse(
    json.dumps(
        assignment(
            bound("a", "ncsa"),
            bound("b", "ncsa"),
            bound("follower", "ncsa", after="a", delay_seconds=60),
            bound("site-1", "ncsa", exclusive="site"),
            bound("site-2", "ncsa", exclusive="site"),
            bound("elsewhere", "psc", exclusive="site"),
            bound("link-1", "ncsa", "psc", exclusive="link"),
            bound("link-2", "ncsa", exclusive="link"),
            bound("link-3", "psc", "ncsa", exclusive="link"),
            resources={"ncsa": RESOURCE, "psc": {**RESOURCE, "site": "psc"}},
        )
    ),
    "ncsa",
)
WITH_WINDOW = parse(json.dumps(assignment(series("a"), windows=[WINDOW])), "ncsa")
IN_A_MINUTE, IN_AN_HOUR = timedelta(minutes=1), timedelta(hours=1)


def run(name: str, *, late: timedelta = timedelta(0), requested: bool = False) -> SiteRun:
    expires_at = NOON + timedelta(days=1) if requested else None
    return SiteRun(ASSIGNMENT.series[name], NOON - late, NOON - late, expires_at)


def verdict(
    one: SiteRun,
    *running: str,
    ends: Mapping[tuple[str, datetime], LeaderEnd] | None = None,
    refusal: str = "",
    capacity: int = 4,
    given: SiteAssignment = ASSIGNMENT,
) -> SiteVerdict:
    others = [run(name) for name in running]
    return judge(one, SiteState(given, NOON, others, capacity, ends or {}, lambda _: refusal))


def skip(reason: str) -> SiteVerdict:
    return SiteVerdict(reason=reason)


def test_a_run_that_nothing_hinders_starts() -> None:
    assert verdict(run("a"), "b") == START


def test_a_window_skips_a_scheduled_run_but_not_a_requested_one() -> None:
    assert verdict(run("a"), given=WITH_WINDOW) == skip("new switch")
    assert verdict(run("a", requested=True), given=WITH_WINDOW) == START


def test_a_series_never_overlaps_itself() -> None:
    expected = skip("overlap: the previous run had not ended when this one was due")
    assert verdict(run("a"), "a") == expected
    assert verdict(run("a", requested=True), "a") == WAIT


def test_a_refusal_of_the_policy_skips_also_what_was_requested() -> None:
    refused = "policy: the probe noop is not allowed"
    assert verdict(run("a"), refusal=refused) == skip(refused)
    assert verdict(run("a", requested=True), refusal=refused) == skip(refused)


@pytest.mark.parametrize(
    ("ended", "has_run", "expected"),
    [
        (timedelta(seconds=60), True, START),
        (timedelta(seconds=59), True, WAIT),
        (timedelta(seconds=60), False, skip("leader: the leader did not run")),
    ],
)
def test_a_follower_starts_a_delay_after_the_end_of_its_leader(
    ended: timedelta, has_run: bool, expected: SiteVerdict
) -> None:
    ends = {("a", NOON): LeaderEnd(NOON - ended, has_run)}
    assert verdict(run("follower"), ends=ends) == expected


def test_a_follower_waits_for_its_leader_for_a_day() -> None:
    assert verdict(run("follower")) == WAIT
    another_slot = {("a", NOON - IN_A_MINUTE): LeaderEnd(NOON - IN_AN_HOUR, has_run=True)}
    assert verdict(run("follower"), ends=another_slot) == WAIT
    too_late = verdict(run("follower", late=timedelta(days=2)))
    assert too_late == skip("leader: the leader has not ended for a day")
    assert verdict(run("follower", requested=True)) == START


@pytest.mark.parametrize(
    ("name", "rival", "is_conflict"),
    [
        ("site-1", "site-2", True),
        ("site-1", "elsewhere", False),
        ("site-1", "a", False),
        ("site-1", "link-1", True),
        ("link-1", "link-2", False),
        ("link-1", "link-3", True),
        ("a", "site-1", False),
    ],
)
def test_exclusive_series_do_not_share_sites_or_links(name: str, rival: str, is_conflict: bool) -> None:
    assert verdict(run(name), rival) == (WAIT if is_conflict else START)


def test_a_wait_for_exclusive_series_has_an_end() -> None:
    late = run("site-1", late=timedelta(seconds=900))
    assert verdict(late, "site-2") == skip("busy: another series used ncsa for 900 s")
    assert verdict(replace(late, expires_at=NOON + IN_AN_HOUR), "site-2") == WAIT


def test_a_run_waits_for_room_and_is_skipped_when_there_is_none_for_long() -> None:
    assert verdict(run("a"), "b", capacity=1, refusal="policy: x") == WAIT
    assert verdict(run("a", late=timedelta(seconds=899)), "b", capacity=1) == WAIT
    late = run("a", late=timedelta(seconds=900))
    assert verdict(late, "b", capacity=1) == skip("room: the reporter already had 1 runs for 900 s")
    assert verdict(run("a", late=IN_AN_HOUR, requested=True), "b", capacity=1) == WAIT
