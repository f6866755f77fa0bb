"""The pauses between attempts grow, to a longest one."""

from __future__ import annotations

from datetime import timedelta

from monitor.core.egress.backoff import pause_after

MINUTE = timedelta(minutes=1)


def test_each_pause_is_four_times_the_one_before() -> None:
    assert [pause_after(failed) / MINUTE for failed in (1, 2, 3, 4)] == [0.5, 2, 8, 32]


def test_no_pause_is_longer_than_the_longest() -> None:
    assert [pause_after(failed, longest=60 * MINUTE) / MINUTE for failed in (4, 5, 30_000)] == [32, 60, 60]
