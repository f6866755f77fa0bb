"""Runs of an application have a weather of their own, and take at least as long as was drawn for them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from monitor.testbed.sites import GridDescription, LocalGridOptions, running_sites
from monitor.testbed.sites.effects import IncomingLink, Terrain
from monitor.testbed.sites.run_clock import LONGEST_RESERVE_SECONDS
from monitor.testbed.sites.site_weather import SiteWeather
from monitor.testbed.weather.conditions import MECHANISMS, Conditions, SiteFault
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run
from tests.monitor.testbed.sites.local_grid import SetWeather

AT = "@2026-01-01T00:00:00.000000Z"
GATHER, PRECO = f"gather-main{AT}", f"preco-main{AT}"
SOURCE, OTHER_SOURCE, COMPUTE, DESTINATION = 0, 1, 5, 6
DRAWN = Conditions(
    index=0,
    seconds=dict.fromkeys(MECHANISMS, 10.0),
    slowest_site={"login": OTHER_SOURCE, "disk": OTHER_SOURCE, "inbound": OTHER_SOURCE},
    others_fraction=0.5,
    application_seconds=dict.fromkeys(MECHANISMS, 30.0),
)
TERRAIN = Terrain(
    scale=1.0,
    reference_file_bytes=1_000_000,
    reference_result_bytes=5_000_000,
    sources=(0, 1, 2, 3, 4),
    applications=("preco*",),
    application_file_bytes=3_000_000,
    application_result_bytes=6_000_000,
)


def site_weather() -> SiteWeather:
    return SiteWeather(SetWeather(now=DRAWN), TERRAIN)


def test_programs_of_an_application_take_its_drawn_time_at_every_site() -> None:
    reserved = site_weather().program_seconds(PRECO, SOURCE, 0.0)
    assert reserved["disk"] == pytest.approx(30.0, abs=0.2)  # less the reserve
    assert site_weather().program_seconds(GATHER, SOURCE, 0.0)["disk"] == pytest.approx(5.0, abs=0.2)
    assert site_weather().program_seconds(PRECO, COMPUTE, 0.0)["compute"] == pytest.approx(30.0, abs=0.2)
    assert site_weather().login_seconds(PRECO, SOURCE) == pytest.approx(30.0, abs=0.2)


def test_transfers_of_an_application_have_the_sizes_of_its_own_files() -> None:
    weather = site_weather()
    inbound = weather.incoming_link(PRECO, sender=SOURCE, receiver=COMPUTE)
    weather.run(PRECO).computed_at = COMPUTE
    outbound = weather.incoming_link(PRECO, sender=COMPUTE, receiver=DESTINATION)
    assert inbound == IncomingLink(100_000.0, None)
    assert outbound == IncomingLink(200_000.0, None, "outbound")
    assert weather.incoming_link(GATHER, sender=OTHER_SOURCE, receiver=COMPUTE) == IncomingLink(
        100_000.0, None
    )
    assert (weather.reference_file_bytes(PRECO), weather.reference_file_bytes(GATHER)) == (
        3_000_000,
        1_000_000,
    )


def test_at_its_source_the_built_program_is_slow_and_not_the_compiler() -> None:
    weather = site_weather()
    seconds = weather.program_seconds(PRECO, SOURCE, 0.0)
    assert seconds["compile"] <= 0
    assert weather.session_environment(PRECO, SOURCE, seconds)["SITE_MAKES_DATA"] == "yes"
    for label, site in ((PRECO, COMPUTE), (GATHER, SOURCE)):
        assert "SITE_MAKES_DATA" not in weather.session_environment(label, site, {})


def test_the_compiler_is_slow_once_per_run() -> None:
    weather = site_weather()
    assert weather.program_seconds(PRECO, COMPUTE, 0.0)["compile"] > 29
    weather.step_ended(PRECO, "compile", began=0.0, planned=30.0, now=30.0)
    assert weather.program_seconds(PRECO, COMPUTE, 30.0)["compile"] <= 0


def test_reserves_of_applications_and_other_probes_are_learned_separately() -> None:
    weather = site_weather()
    for number in range(50):
        label = f"gather-{number}{AT}"
        weather.step_ended(label, "login", began=0.0, planned=1.0, now=1.0)
        weather.step_ended(label, "disk", began=9.0, planned=10.0, now=10.0)
    assert weather.login_seconds(GATHER, OTHER_SOURCE) == pytest.approx(9.5, abs=0.01)
    assert weather.login_seconds(PRECO, OTHER_SOURCE) == pytest.approx(29.85, abs=0.01)


def test_series_of_applications_are_recognised_by_name() -> None:
    labels = (PRECO, f"preco-geon{AT}", GATHER, f"my-preco{AT}", None)
    assert [TERRAIN.is_application(label) for label in labels] == [True, True, False, False, False]
    assert not dataclasses.replace(TERRAIN, applications=()).is_application(PRECO)


def preco(grid: GridDescription) -> Report:
    """Run PreCo for real."""
    return run(
        Assignment(
            series="preco-main",
            slot=grid.epoch,
            reporter="test",
            probe="preco",
            bindings={"source": ["anl"], "compute": [grid.compute], "destination": [grid.destination]},
            resources=grid.resources,
            parameters={"projections": 61, "size": 64},
            limit_seconds=240.0,
        )
    )


def drawn_for_preco(*seconds: float) -> Conditions:
    return dataclasses.replace(DRAWN, application_seconds=dict(zip(MECHANISMS, seconds, strict=True)))


@pytest.mark.grid
@pytest.mark.nightly
def test_a_run_of_preco_takes_at_least_as_long_as_was_drawn_for_it(tmp_path: Path) -> None:
    """Single stages have no lower bound: a stage that is late gives the next one credit."""
    drawn = drawn_for_preco(1.5, 1.0, 1.0, 0.5, 1.0, 1.5, 0.5, 0.5)
    with running_sites(tmp_path, weather=SetWeather(now=drawn), options=LocalGridOptions(scale=1.0)) as grid:
        report = preco(grid)
    assert report.outcome == "passed", report.reason
    assert [stage.name for stage in report.stages] == list(MECHANISMS.values())
    least_seconds = sum(drawn.application_seconds.values()) - LONGEST_RESERVE_SECONDS
    assert sum(stage.seconds for stage in report.stages) >= least_seconds


@pytest.mark.grid
@pytest.mark.nightly
def test_the_stages_of_a_run_follow_the_times_drawn_for_preco(tmp_path: Path) -> None:
    drawn = drawn_for_preco(1.5, 2.0, 1.5, 1.0, 1.0, 2.0, 1.0, 0.5)
    with running_sites(tmp_path, weather=SetWeather(now=drawn), options=LocalGridOptions(scale=1.0)) as grid:
        for _ in range(3):  # other load only adds time, and not to every run
            wrong = wrong_stages(drawn, preco(grid))
            if not wrong:
                break
    assert wrong == {}


def wrong_stages(drawn: Conditions, report: Report) -> dict[str, tuple[float, float]]:
    """Return the measured and the drawn seconds of each stage that did not take what was drawn."""
    assert report.outcome == "passed", report.reason
    measured = {stage.name: stage.seconds for stage in report.stages}
    # A single run, from which no reserve has been learned: a wider tolerance than in test_fidelity.
    return {
        stage: (measured[stage], expected)
        for mechanism, stage in MECHANISMS.items()
        if abs(measured[stage] - (expected := drawn.application_seconds[mechanism])) > 0.15 * expected + 0.8
    }


@pytest.mark.grid
@pytest.mark.nightly
def test_a_full_disk_at_its_source_fails_an_application(tmp_path: Path) -> None:
    fine = dataclasses.replace(DRAWN, application_seconds={}, seconds={})
    broken = dataclasses.replace(fine, fault=SiteFault(SOURCE, "disk", "full"))
    with running_sites(tmp_path, weather=SetWeather(now=broken)) as grid:
        report = preco(grid)
    assert (report.outcome, report.failure and report.failure.stage) == ("failed", "stage_data")
    assert "No space left on device" in str(report.reason)
