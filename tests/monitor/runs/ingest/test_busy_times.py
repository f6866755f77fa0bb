"""When a backlog that found no place is to come again."""

from __future__ import annotations

from monitor.runs.ingest.busy_times import LEAST_SECONDS, MOST_SECONDS, TRIES, BusyTimes


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_single_backlog_comes_again_soon() -> None:
    assert BusyTimes(Clock()).retry_seconds("ncsa", 2) == LEAST_SECONDS


def test_the_more_backlogs_wait_the_later_each_comes_again() -> None:
    busy = BusyTimes(Clock())
    waits = [busy.retry_seconds(f"site-{number}", 2) for number in range(500)]
    assert waits == sorted(waits)
    assert waits[-1] == round(500 * 0.5 / 2 / TRIES)
    assert busy.retry_seconds("site-0", 2) == waits[-1], "a reporter counts once"
    assert busy.retry_seconds("site-0", 1) == round(500 * 0.5 / TRIES)


def test_the_slower_the_batches_the_later_a_backlog_comes_again() -> None:
    clock = Clock()
    busy = BusyTimes(clock)
    for _ in range(100):
        with busy.storing("ncsa"):
            clock.seconds += 100.0
    assert busy.retry_seconds("sdsc", 1) == 100 / TRIES
    assert [busy.retry_seconds(f"site-{number}", 1) for number in range(20)][-1] == MOST_SECONDS


def test_backlogs_that_were_stored_or_do_not_come_again_are_forgotten() -> None:
    clock = Clock()
    busy = BusyTimes(clock)
    most = [busy.retry_seconds(f"site-{number}", 2) for number in range(200)][-1]
    for number in range(100):
        with busy.storing(f"site-{number}"):
            pass
    assert busy.retry_seconds("ncsa", 2) < most
    clock.seconds += 2 * most
    assert busy.retry_seconds("ncsa", 2) == LEAST_SECONDS
