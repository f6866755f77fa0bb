"""How many alerts a condition would have opened, from stored runs alone."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from monitor.analysis.alerts import conditions
from monitor.analysis.alerts.conditions.base import RunOutcome
from monitor.analysis.alerts.replay import StoredRun, replay
from monitor.models.run import State
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)
STATES = {
    ".": State.PASSED,
    "x": State.FAILED,
    "m": State.MISSED,
    "s": State.SKIPPED,
    "n": State.NO_DATA,
    "?": State.EXPECTED,
}


def history(letters: str) -> list[StoredRun]:
    """Return an hourly run for each of *letters*, which ended a minute after its slot; ``?`` did not end."""
    runs = []
    for number, letter in enumerate(letters):
        slot = NOON + number * HOUR
        ended_at = None if letter == "?" else slot + timedelta(minutes=1)
        runs.append(StoredRun(1, RunOutcome(uuid.uuid4(), slot, STATES[letter]), slot, ended_at))
    return runs


@pytest.mark.parametrize(
    ("kind", "threshold", "letters", "hours"),
    [
        ("failures_in_row", 2, "", []),
        ("failures_in_row", 2, "xx", [1]),
        ("failures_in_row", 2, "xxxx", [1]),  # one alert, which stays open
        ("failures_in_row", 2, "xx.xx", [1, 4]),
        ("failures_in_row", 2, "x.x.x", []),
        ("failures_in_row", 2, "xsnx", [3]),  # skipped runs and runs without data do not count
        ("failures_in_row", 3, "mmm", [2]),
        ("silent_seconds", 7200, "....", []),
        ("silent_seconds", 7200, ".mmm.", [3]),  # two hours after the first slot that was missed
        ("silent_seconds", 7200, ".mmm.mmm.", [3, 7]),
        ("silent_seconds", 7200, ".ss?.", []),
        ("silent_seconds", 7200, ".ssm..", []),
    ],
)
def test_a_replay_opens_the_alerts_of_the_history(
    kind: str, threshold: int, letters: str, hours: list[int]
) -> None:
    until = NOON + len(letters) * HOUR
    openings = list(replay(conditions.condition(kind, threshold), history(letters), until))
    assert [round((at - NOON) / HOUR) for at, _ in openings] == hours


def test_a_silence_that_lasts_is_found_without_a_further_run() -> None:
    condition = conditions.condition("silent_seconds", 7200)
    assert [at for at, _ in replay(condition, history(".?"), NOON + 9 * HOUR)] == [NOON + 3 * HOUR]
