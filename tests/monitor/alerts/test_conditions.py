"""Is an alert to be open? A table of cases: what is known of a series, and what a rule says to it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from monitor.alerts.conditions import COUNTED, HEARD, UNHEARD, Condition, Known, Outcome, judge
from monitor.models.run import State

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SHORT = {"P": State.PASSED, "F": State.FAILED, "T": State.TIMED_OUT, "B": State.BROKEN, "M": State.MISSED}
SHORT |= {"L": State.LOST, "E": State.EXPECTED, "R": State.RUNNING}
THREE = Condition(failures_in_row=3)
TWO_HOURS = Condition(silent_seconds=7200)


def run(hours_ago: float, state: str, reason: str = "") -> Outcome:
    return Outcome(uuid.uuid4(), NOON - hours_ago * HOUR, SHORT[state], reason)


def outcomes(states: str) -> Known:
    """Runs of the last hours, the newest first."""
    return Known([run(i, state) for i, state in enumerate(states)])


def unheard(hours_ago: float, state: str = "M", newest: str = "P") -> Known:
    first = run(hours_ago, state)
    return Known(outcomes(newest).newest, first, first.slot)


@pytest.mark.parametrize(
    ("newest_first", "is_open"),
    [
        ("", False),
        ("F", False),
        ("FF", False),
        ("FFF", True),
        ("FFFF", True),
        ("FTB", True),
        ("MLF", True),
        ("PFFF", False),
        ("FPFFF", False),
        ("FFPFFF", False),
        ("FFFP", True),
        ("PPP", False),
    ],
)
def test_so_many_runs_in_a_row_that_did_not_pass_open_an_alert(newest_first: str, is_open: bool) -> None:
    assert judge(THREE, outcomes(newest_first), NOON).is_open == is_open


@pytest.mark.parametrize(("newest_first", "is_open"), [("F", True), ("PF", False), ("", False), ("M", True)])
def test_one_in_a_row_is_every_one(newest_first: str, is_open: bool) -> None:
    assert judge(Condition(failures_in_row=1), outcomes(newest_first), NOON).is_open == is_open


def test_an_alert_of_failures_says_since_when_and_what_the_last_one_said() -> None:
    known = Known([run(0, "F", "transfer_ring at there failed: No space left"), run(1, "M"), run(2, "T")])
    verdict = judge(THREE, known, NOON)
    assert verdict.text == (
        "3 runs in a row did not pass; the last: transfer_ring at there failed: No space left"
    )
    assert (verdict.run, verdict.since) == (known.newest[0].run, NOON - 2 * HOUR)


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        ("F", "init at there failed: refused", "init at there failed: refused"),
        ("M", "no reporter took it", "missed: no reporter took it"),
        ("T", "", "timed out"),
        ("F", "failed: " + "x" * 1000, "failed: " + "x" * 492 + "..."),
    ],
)
def test_an_alert_says_once_how_the_run_ended(state: str, reason: str, said: str) -> None:
    verdict = judge(Condition(failures_in_row=1), Known([run(0, state, reason)]), NOON)
    assert verdict.text == f"a run did not pass: {said}"


def test_the_run_that_passed_is_the_one_that_closes() -> None:
    known = outcomes("FPF")
    verdict = judge(THREE, known, NOON)
    assert (verdict.run, verdict.text) == (known.newest[1].run, "passed at 2026-03-01 11:00:00 UTC")


@pytest.mark.parametrize(
    ("known", "is_open", "again_in_hours"),
    [
        (Known(), False, None),
        (outcomes("P"), False, None),  # nothing is expected: it runs on demand, say
        (unheard(0.0, "E"), False, 2.0),
        (unheard(1.9), False, 0.1),
        (unheard(2.0), True, None),
        (unheard(2.0, "L"), True, None),
        (unheard(2.0, "R"), True, None),
        (unheard(2.0, "E", newest=""), True, None),  # it has never been heard of
        (unheard(5.0, newest="MMM"), True, None),
        (unheard(-6.0, "E"), False, 8.0),  # the next one is to come
        (unheard(-6.0, "E", newest="F"), False, 8.0),  # a failure is a sign of life
    ],
)
def test_a_silence_is_counted_from_the_first_run_that_was_expected_in_it(
    known: Known, is_open: bool, again_in_hours: float | None
) -> None:
    verdict = judge(TWO_HOURS, known, NOON)
    assert verdict.is_open == is_open
    assert verdict.again_at == (None if again_in_hours is None else NOON + again_in_hours * HOUR)


def test_a_silence_says_how_long_and_after_which_run() -> None:
    known = unheard(3.0)
    verdict = judge(TWO_HOURS, known, NOON)
    assert verdict.text == "nothing was heard for 2 h after a run was expected at 2026-03-01 09:00:00 UTC"
    assert known.unheard is not None
    assert (verdict.run, verdict.since) == (known.unheard.run, known.unheard.slot)


def test_a_run_that_may_begin_later_than_its_slot_is_not_missed_before() -> None:
    first = run(2.0, "E")
    assert not judge(TWO_HOURS, Known([], first, first.slot + HOUR), NOON).is_open


def test_who_is_heard_of_again_says_how() -> None:
    known = outcomes("MF")
    verdict = judge(TWO_HOURS, known, NOON)
    assert (verdict.run, verdict.text) == (
        known.newest[1].run,
        "heard of again: failed at 2026-03-01 11:00:00 UTC",
    )


def test_every_state_of_a_run_means_something_to_a_rule_but_those_that_say_nothing() -> None:
    assert set(State) - {*COUNTED, *UNHEARD} == {State.SKIPPED, State.NO_DATA}
    assert not {*HEARD} & {*UNHEARD}
