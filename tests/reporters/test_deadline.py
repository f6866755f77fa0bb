"""Only a timeout caused by the run's limit becomes OutOfTime."""

from __future__ import annotations

import pytest

from probes.base import OutOfTime, ProbeFailed
from reporters.base import CannotConnect, TookTooLong
from reporters.deadline import Deadline


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now

    def fail_after(self, seconds: float, error: Exception) -> None:
        self.now += seconds
        raise error


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(("requested", "expected"), [(10.0, 10.0), (60.0, 50.0), (float("inf"), 50.0)])
def test_a_limit_is_the_shorter_of_two(clock: Clock, requested: float, expected: float) -> None:
    with Deadline(50.0, clock).bounding(requested, "copying", "iu") as limit_seconds:
        assert limit_seconds == expected


@pytest.mark.parametrize("error", [TookTooLong("x", stderr_tail="e"), CannotConnect("x", stderr_tail="e")])
def test_a_timeout_at_the_deadline_is_out_of_time(clock: Clock, error: ProbeFailed) -> None:
    deadline = Deadline(50.0, clock)
    with pytest.raises(OutOfTime) as raised, deadline.bounding(60.0, "copying", "iu"):
        clock.fail_after(50.0, error)
    assert raised.value.message == "the run's limit of 50 s was reached while copying"
    assert (raised.value.resource, raised.value.stderr_tail) == ("iu", "e")


def test_a_timeout_before_the_deadline_keeps_its_error(clock: Clock) -> None:
    deadline = Deadline(50.0, clock)
    with pytest.raises(TookTooLong, match="own limit"), deadline.bounding(10.0, "copying", "iu"):
        clock.fail_after(10.0, TookTooLong("own limit"))


def test_another_failure_at_the_deadline_keeps_its_error(clock: Clock) -> None:
    deadline = Deadline(50.0, clock)
    with pytest.raises(ProbeFailed, match="disk full") as raised, deadline.bounding(60.0, "copying", "iu"):
        clock.fail_after(60.0, ProbeFailed("disk full"))
    assert not isinstance(raised.value, OutOfTime)


def test_the_outermost_action_is_in_the_message(clock: Clock) -> None:
    deadline = Deadline(50.0, clock)
    with (
        pytest.raises(OutOfTime, match="while copying a to b"),
        deadline.bounding(60.0, "copying a to b", "iu"),
        deadline.bounding(60.0, "running sh", "iu"),
    ):
        clock.fail_after(60.0, TookTooLong("x"))


def test_nothing_begins_after_the_deadline(clock: Clock) -> None:
    deadline = Deadline(50.0, clock)
    clock.now += 50.0
    with pytest.raises(OutOfTime, match="while copying"), deadline.bounding(1.0, "copying", "iu"):
        raise AssertionError("this must not be reached")


def test_the_deadline_restarts_for_the_cleanup(clock: Clock) -> None:
    deadline = Deadline(50.0, clock)
    clock.now += 60.0
    deadline.restart(5.0, "cleanup")
    assert deadline.remaining_seconds == 5.0
    clock.now += 5.0
    with pytest.raises(OutOfTime, match="the cleanup's limit of 5 s was reached while removing"):
        deadline.check("removing")
