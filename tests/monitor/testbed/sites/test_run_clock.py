"""The clock of a run: credit, reserves, and the site of the computation."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.testbed.sites.run_clock import LONGEST_RESERVE_SECONDS, Reserves, RunClock, planned_seconds

OVERHEAD_SECONDS = 0.3  # before a stage's slow step, and again after it


def stages(drawn: list[float], reserves: Reserves) -> list[float]:
    """Simulate a run with the clock; return the seconds of its stages."""
    clock, now, lasted = RunClock(), 0.0, []
    for number, seconds in enumerate(drawn):
        stage_began = now
        began = now + OVERHEAD_SECONDS / 2
        mechanism = f"step {number}"
        planned = began + seconds - clock.credit_seconds(began) - reserves.after(mechanism)
        ended = max(began, planned)
        clock.step_ended(mechanism, reserves, began=began, planned=planned, now=ended)
        now = ended + OVERHEAD_SECONDS / 2
        lasted.append(now - stage_began)
    return lasted


def test_stages_take_the_drawn_time_despite_overhead() -> None:
    reserves, drawn = Reserves(), [2.0, 1.0, 0.4, 3.0, 0.5]
    for _ in range(30):
        lasted = stages(drawn, reserves)
    assert lasted == pytest.approx(drawn, abs=0.15)


def test_longer_real_work_gives_the_next_step_no_credit() -> None:
    clock, reserves = RunClock(), Reserves()
    clock.step_ended("disk", reserves, began=0.0, planned=1.0, now=5.0)
    assert clock.credit_seconds(5.0) == 0.0


def test_the_first_step_of_a_run_has_no_credit() -> None:
    assert RunClock().credit_seconds(100.0) == 0.0


def test_credit_is_limited() -> None:
    clock, reserves = RunClock(), Reserves()
    clock.step_ended("disk", reserves, began=0.0, planned=1.0, now=1.0)
    assert clock.credit_seconds(1000.0) == clock.credit_seconds(10.0) == 1.0


def test_a_reserve_is_learned_within_bounds() -> None:
    reserves = Reserves()
    for _ in range(100):
        reserves.learn("disk", 0.2)
        reserves.learn("login", 60.0)
        reserves.learn("unlink", -1.0)
    assert reserves.after("disk") == pytest.approx(0.12, abs=0.001)
    assert reserves.after("login") == pytest.approx(LONGEST_RESERVE_SECONDS, abs=0.001)
    assert reserves.after("unlink") == pytest.approx(0.0, abs=0.001)


def test_a_reserve_is_learned_once_per_step_of_several_sites() -> None:
    clock, reserves = RunClock(), Reserves()
    clock.step_ended("login", reserves, began=0.0, planned=1.0, now=1.0)
    clock.step_ended("disk", reserves, began=1.3, planned=2.0, now=2.0)
    after_first = reserves.after("login")
    clock.step_ended("disk", reserves, began=1.4, planned=2.5, now=2.5)
    assert reserves.after("login") == after_first
    assert clock.last is not None
    assert clock.last.ended_at == 2.5


@pytest.mark.parametrize(
    ("mechanism", "seconds"), [("disk", 3.0), ("queue", 5.0), ("compute", 7.0), ("unlink", 0.0)]
)
def test_a_job_is_planned_to_end_after_queue_and_computation(mechanism: str, seconds: float) -> None:
    assert planned_seconds(mechanism, {"disk": 3.0, "queue": 5.0, "compute": 2.0}) == seconds


def test_the_compute_site_is_known_before_the_session_of_the_job_ends(tmp_path: Path) -> None:
    clock, paced_file = RunClock(), tmp_path / "paced"
    clock.paced_files[paced_file] = 5
    assert clock.compute_site() is None
    paced_file.write_text("disk\n")
    assert clock.compute_site() is None
    paced_file.write_text("compute\n")
    assert clock.compute_site() == 5
