"""The weather of a site reaches the runs of a reporter on its host, which needs no session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

import probes
from monitor.testbed.demo.definition import node
from monitor.testbed.sites.effects import Terrain, host_environment
from monitor.testbed.sites.layout import Layout
from monitor.testbed.sites.programs import search_path
from monitor.testbed.weather.conditions import Conditions, SiteFault
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run
from tests.monitor.testbed.sites.local_grid import Client, conditions
from tests.waiting import eventually

ORNL, NCSA = 2, 5
SLOT = datetime(2026, 1, 1, tzinfo=UTC)
TERRAIN = Terrain(scale=2.0, reference_file_bytes=1, reference_result_bytes=1, sources=(0, 1, 2))


@contextmanager
def weather_at_ornl(client: Client, weather: Conditions, line: str) -> Iterator[None]:
    """Set *weather* while the context is open; the file of the site ornl then has *line*."""
    place = Layout.of(client.grid.directory, len(client.grid.sites)).sites[ORNL]
    with client.now(weather):
        assert eventually(lambda: line in place.weather.read_text().splitlines())
        yield


def run_at_ornl(client: Client, probe: str) -> Report:
    layout = Layout.of(client.grid.directory, len(client.grid.sites))
    host = node(client.grid.resources["ornl"], search_path(layout, layout.sites[ORNL], with_compiler=True))
    client.scratch("ornl").with_name("scratch-node").mkdir(exist_ok=True)
    return run(
        Assignment(
            series=f"{probe}-ornl",
            slot=SLOT,
            reporter="ornl",
            probe=probe,
            bindings={"target": [host.name]},
            resources={host.name: host},
            parameters=probes.load(probe).trial,
            limit_seconds=120.0,
        )
    )


@pytest.mark.grid
@pytest.mark.parametrize(
    ("fault", "probe", "stage", "message"),
    [
        (SiteFault(ORNL, "disk", "full"), "disk", "sequential_write", "No space left on device"),
        (SiteFault(ORNL, "unlink", "busy"), "disk", "cleanup", "Device or resource busy"),
        (SiteFault(ORNL, "compile", "missing"), "disk", "build_executable", "cc: not found"),
        (SiteFault(ORNL, "queue", "rejected"), "stream", "queue_wait", "Batch job submission failed"),
    ],
)
def test_a_fault_of_its_site_fails_the_run_of_a_reporter_there(
    client: Client, fault: SiteFault, probe: str, stage: str, message: str
) -> None:
    line = f"SITE_{fault.mechanism.upper()}_FAULT={fault.kind}"
    with weather_at_ornl(client, conditions(fault=fault), line):
        report = run_at_ornl(client, probe)
    assert (report.outcome, report.failure and report.failure.stage) == ("failed", stage), report.reason
    assert message in report.reason


@pytest.mark.grid
@pytest.mark.nightly
def test_a_slow_disk_of_its_site_slows_the_run_of_a_reporter_there(client: Client) -> None:
    weather = conditions(seconds={"disk": 1.5}, fault=SiteFault(NCSA, "disk", "full"))
    with weather_at_ornl(client, weather, "SITE_DISK_SECONDS=1.500"):
        report = run_at_ornl(client, "disk")
    assert report.outcome == "passed", report.reason
    seconds = {stage.name: stage.seconds for stage in report.stages}
    assert seconds["sequential_write"] >= 1.5


def test_a_fault_of_computing_at_another_site_does_not_reach_the_host() -> None:
    fault = SiteFault(NCSA, "compile", "crash")
    assert host_environment(conditions(fault=fault), ORNL, TERRAIN)["SITE_COMPILE_FAULT"] == ""
    assert host_environment(conditions(fault=fault), NCSA, TERRAIN)["SITE_COMPILE_FAULT"] == "crash"


def test_without_weather_every_variable_is_empty() -> None:
    assert set(host_environment(None, ORNL, TERRAIN).values()) == {""}
