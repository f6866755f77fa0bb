"""Hashed slots."""

from __future__ import annotations

import pytest

from reporters.cron import InvalidSchedule, hashed, resolve


@pytest.mark.parametrize(
    ("schedule", "cron"),
    [
        ("* * * * *", "* * * * *"),
        ("0 12 * * 1-5", "0 12 * * 1-5"),
        ("H * * * *", "36 * * * *"),
        ("@hourly", "36 * * * *"),
        ("H(0-29) * * * *", "6 * * * *"),
        ("H/15 * * * *", "6-59/15 * * * *"),
    ],
)
def test_a_schedule_becomes_plain_cron(schedule: str, cron: str) -> None:
    assert resolve(schedule, "gather-main") == cron


def test_two_series_get_slots_of_their_own() -> None:
    assert resolve("@daily", "gather-main") != resolve("@daily", "circle-main")


@pytest.mark.parametrize("schedule", ["", "* * * *", "H(9-3) * * * *", "H(0-99) * * * *", "H/70 * * * *"])
def test_a_schedule_that_does_not_fit_is_refused(schedule: str) -> None:
    with pytest.raises(InvalidSchedule):
        resolve(schedule, "gather-main")


def test_hashed_minutes_cover_the_full_hour_evenly() -> None:
    counts = [0] * 60
    for number in range(6000):
        counts[hashed(f"series-{number}", "minute", 60)] += 1
    chi_square = sum((count - 100) ** 2 / 100 for count in counts)
    assert min(counts) > 0
    assert chi_square < 87.17  # p = 0.01 at 59 degrees of freedom
