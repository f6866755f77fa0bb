"""Consecutive failures by one cause are an episode; outages have a mean length and a mean distance."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.failures.episodes import FailureEpisode, JudgedRun, RepairTimes, episodes, repair_times
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)


def hourly(causes: str) -> list[JudgedRun]:
    """Return a run an hour from noon on: a letter is a cause, a dot a passed run."""
    return [JudgedRun(NOON + n * HOUR, None if c == "." else c) for n, c in enumerate(causes)]


def drawn(found: list[FailureEpisode]) -> list[str]:
    """Return each episode as ``cause first-latest/end``, in hours after noon; ``!`` if a run passed."""
    return [
        f"{each.cause}{(each.began_at - NOON) // HOUR}-{(each.latest_at - NOON) // HOUR}/"
        + (f"{(each.ended_at - NOON) // HOUR}" if each.ended_at else "")
        + ("!" if each.is_repaired else "")
        for each in found
    ]


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ("", []),
        ("....", []),
        ("a", ["a0-0/"]),
        ("a.", ["a0-0/1!"]),
        (".aaa.", ["a1-3/4!"]),
        (".aab.", ["a1-2/3", "b3-3/4!"]),
        ("aba", ["a0-0/1", "b1-1/2", "a2-2/"]),
        ("a.a", ["a0-0/1!", "a2-2/"]),
        (".aa..bbb", ["a1-2/3!", "b5-7/"]),
    ],
)
def test_episodes(causes: str, expected: list[str]) -> None:
    assert drawn(episodes(hourly(causes))) == expected


@given(st.text(alphabet="ab.", max_size=50))
def test_episodes_have_each_failed_run_once_and_in_order(causes: str) -> None:
    found = episodes(hourly(causes))
    assert sum(each.runs for each in found) == len(causes.replace(".", ""))
    assert "".join(each.cause * each.runs for each in found) == causes.replace(".", "")
    assert sum(each.ended_at is None for each in found) == (causes[-1:] in {"a", "b"})


@pytest.mark.parametrize(
    ("causes", "outages", "between_hours", "repair_hours"),
    [
        ("", 0, None, None),
        ("...", 0, None, None),
        ("a", 1, None, None),
        ("aa.", 1, None, 2),
        ("..a", 1, 2, None),
        ("..ab.", 1, 2, 2),  # another cause does not end the outage
        ("..a....b..", 2, 3, 1),  # 2 hours, then 4
        ("a.a.a.", 3, 1, 1),
    ],
)
def test_repair_times(causes: str, outages: int, between_hours: int | None, repair_hours: int | None) -> None:
    def hours(count: int | None) -> timedelta | None:
        return None if count is None else count * HOUR

    assert repair_times(hourly(causes)) == RepairTimes(outages, hours(between_hours), hours(repair_hours))
