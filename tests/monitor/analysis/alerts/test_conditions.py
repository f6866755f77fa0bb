"""Whether an alert is open: tables of recent runs and thresholds."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from monitor.analysis.alerts.conditions import condition
from monitor.analysis.alerts.conditions.base import (
    COUNTED,
    REPORTED_HERE,
    UNREPORTED,
    ConditionInput,
    RunOutcome,
)
from monitor.models.run import State

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SHORT = {"P": State.PASSED, "F": State.FAILED, "T": State.TIMED_OUT, "B": State.BROKEN, "M": State.MISSED}
SHORT |= {"L": State.LOST, "E": State.EXPECTED, "R": State.RUNNING}
THREE = condition("failures_in_row", 3)
TWO_HOURS = condition("silent_seconds", 7200)


def run(hours_ago: float, state: str, reason: str = "") -> RunOutcome:
    return RunOutcome(uuid.uuid4(), NOON - hours_ago * HOUR, SHORT[state], reason)


def outcomes(states: str) -> ConditionInput:
    """Runs of the last hours, newest first."""
    return ConditionInput([run(i, state) for i, state in enumerate(states)])


def unreported(hours_ago: float, state: str = "M", newest: str = "P") -> ConditionInput:
    first = run(hours_ago, state)
    return ConditionInput(outcomes(newest).newest, first, first.slot)


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
def test_as_many_consecutive_failures_as_the_threshold_open_an_alert(
    newest_first: str, is_open: bool
) -> None:
    assert THREE.judge(outcomes(newest_first), NOON).is_open == is_open


@pytest.mark.parametrize(("newest_first", "is_open"), [("F", True), ("PF", False), ("", False), ("M", True)])
def test_a_threshold_of_one_opens_an_alert_at_every_failure(newest_first: str, is_open: bool) -> None:
    assert condition("failures_in_row", 1).judge(outcomes(newest_first), NOON).is_open == is_open


def test_an_alert_of_failures_gives_its_start_and_the_latest_reason() -> None:
    runs = ConditionInput(
        [run(0, "F", "transfer_ring at there failed: No space left"), run(1, "M"), run(2, "T")]
    )
    verdict = THREE.judge(runs, NOON)
    assert verdict.text == ("3 consecutive failures; latest: transfer_ring at there failed: No space left")
    assert (verdict.run, verdict.since) == (runs.newest[0].run, NOON - 2 * HOUR)


@pytest.mark.parametrize(
    ("state", "reason", "text"),
    [
        ("F", "init at there failed: refused", "init at there failed: refused"),
        ("M", "no reporter took it", "missed: no reporter took it"),
        ("T", "", "timed out"),
        ("F", "failed: " + "x" * 1000, "failed: " + "x" * 492 + "..."),
    ],
)
def test_an_alert_gives_the_outcome_of_the_run_once(state: str, reason: str, text: str) -> None:
    verdict = condition("failures_in_row", 1).judge(ConditionInput([run(0, state, reason)]), NOON)
    assert verdict.text == f"a run did not pass: {text}"


def test_the_run_that_passed_closes_the_alert() -> None:
    runs = outcomes("FPF")
    verdict = THREE.judge(runs, NOON)
    assert (verdict.run, verdict.text) == (runs.newest[1].run, "passed at 2026-03-01 11:00:00 UTC")


@pytest.mark.parametrize(
    ("runs", "is_open", "recheck_in_hours"),
    [
        (ConditionInput(), False, None),
        (outcomes("P"), False, None),  # nothing is scheduled
        (unreported(0.0, "E"), False, 2.0),
        (unreported(1.9), False, 0.1),
        (unreported(2.0), True, None),
        (unreported(2.0, "L"), True, None),
        (unreported(2.0, "R"), True, None),
        (unreported(2.0, "E", newest=""), True, None),  # the series has never reported
        (unreported(5.0, newest="MMM"), True, None),
        (unreported(-6.0, "E"), False, 8.0),  # the next run lies ahead
        (unreported(-6.0, "E", newest="F"), False, 8.0),  # a failure is a report
    ],
)
def test_a_silence_counts_from_the_first_unreported_run(
    runs: ConditionInput, is_open: bool, recheck_in_hours: float | None
) -> None:
    verdict = TWO_HOURS.judge(runs, NOON)
    assert verdict.is_open == is_open
    assert verdict.recheck_at == (None if recheck_in_hours is None else NOON + recheck_in_hours * HOUR)


def test_an_alert_of_a_silence_gives_its_length_and_the_unreported_run() -> None:
    runs = unreported(3.0)
    verdict = TWO_HOURS.judge(runs, NOON)
    assert verdict.text == "no report for 2 h after a run was due at 2026-03-01 09:00:00 UTC"
    assert runs.unreported is not None
    assert (verdict.run, verdict.since) == (runs.unreported.run, runs.unreported.slot)


def test_a_silence_counts_from_the_due_time_of_a_run_that_may_start_after_its_slot() -> None:
    first = run(2.0, "E")
    assert not TWO_HOURS.judge(ConditionInput([], first, first.slot + HOUR), NOON).is_open


def test_a_report_after_a_silence_closes_the_alert_with_its_outcome() -> None:
    runs = outcomes("MF")
    verdict = TWO_HOURS.judge(runs, NOON)
    assert (verdict.run, verdict.text) == (
        runs.newest[1].run,
        "reported again: failed at 2026-03-01 11:00:00 UTC",
    )


def test_every_state_but_skipped_and_no_data_counts_for_a_condition() -> None:
    assert set(State) - {*COUNTED, *UNREPORTED} == {State.SKIPPED, State.NO_DATA}
    assert not {*REPORTED_HERE} & {*UNREPORTED}
