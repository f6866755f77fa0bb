"""How far the clock of a host was off during a run, from the report and the server's time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reporters.remote.agent.clock_correction import corrected
from reporters.remote.clock import ClockOffset
from reporters.report import MOST_CORRECTION_SECONDS, Clock, Report
from reporters.skipped import skipped
from tests.reporters.remote.policy.assignments import assignment

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)  # by the server's clock, when the report is made
RUN_SECONDS = 100.0


def made(*, began: float, ended: float) -> Report:
    """Return the report of a run; its times are by the host's clock, in seconds since noon."""
    report = skipped(assignment(), "a test")
    times = [NOON + timedelta(seconds=seconds) for seconds in (began, ended)]
    clock = Clock(times[1], synchronised=False)
    return replace(report, started_at=times[0], seconds=RUN_SECONDS, clock=clock)


@pytest.mark.parametrize(
    ("began", "ended", "offset", "began_at"),
    [
        (-100.0, 0.0, 0.0, -100.0),  # the clock is right
        (-97.0, 3.0, -3.0, -97.0),  # off by less than matters: not corrected
        (3500.0, 3600.0, -3600.0, -100.0),  # an hour ahead
        (-3700.0, -3600.0, 3600.0, -100.0),  # an hour behind
        (-1e9, -1e9 + 100, 1e9 - 100, -100.0),  # never set since its battery failed
        (3500.0, 0.0, 0.0, -100.0),  # set back during the run
        (3500.0, 3600.0, 0.0, -100.0),  # set back after the run
        (-400.0, 0.0, 0.0, -400.0),  # the host has slept during the run
        (-3700.0, 0.0, 0.0, -3700.0),  # so it may have here
    ],
)
def test_a_run_began_when_the_server_had_the_time(
    began: float, ended: float, offset: float, began_at: float
) -> None:
    report = corrected(made(began=began, ended=ended), ClockOffset(offset, 0.05), NOON)
    assert report.started_at == NOON + timedelta(seconds=began), "the times of the host stay"
    assert (report.began_at - NOON).total_seconds() == pytest.approx(began_at)


def test_nothing_is_corrected_before_the_server_has_told_its_time() -> None:
    report = made(began=3500.0, ended=3600.0)
    assert corrected(report, None, NOON) is report


@pytest.mark.parametrize(
    "offset", [ClockOffset(-60.0, 120.0), ClockOffset(-2 * MOST_CORRECTION_SECONDS, 0.0)]
)
def test_an_estimate_that_is_no_better_than_the_clock_corrects_nothing(offset: ClockOffset) -> None:
    report = made(began=-100.0, ended=0.0)
    assert corrected(report, offset, NOON).clock.correction_seconds == 0
