"""Consecutive failures by one cause are an episode; repaired episodes have a mean length."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.outcomes.episodes import FailureEpisode, JudgedRun, episodes, mean_to_repair
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
    ("causes", "hours"),
    [
        ("", None),
        ("...", None),
        ("a", None),  # lasts
        ("ab", None),  # another failure ended the first one
        (".a.", 1),
        (".aaa.a", 3),
        ("a..aaa.", 2),
        ("ab.", 1),  # of b alone
    ],
)
def test_the_mean_time_to_repair_is_that_of_repaired_episodes(causes: str, hours: int | None) -> None:
    assert mean_to_repair(episodes(hourly(causes))) == (None if hours is None else hours * HOUR)
