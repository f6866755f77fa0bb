"""Seven real SSH sites on loopback with injected faults; one set per worker process."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.sites import GridDescription, LocalGridOptions, running_sites
from monitor.testbed.weather.conditions import SiteFault
from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig
from reporters.report import Report
from tests.probes.run_clock import RunClock
from tests.probes.runs import LIMIT_SECONDS
from tests.probes.ways import FaultWeather
from tests.waiting import eventually

FILE_BYTES = 200_000
SOURCES = ("anl", "iu", "ornl", "tacc", "purdue")
RING = ("iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl")


@dataclass
class SshGrid:
    """The sites, and how to run a probe on them."""

    description: GridDescription
    weather: FaultWeather
    _slots: Iterator[int] = field(default_factory=itertools.count)

    def inject_fault(self, site: str, mechanism: str, kind: str) -> None:
        self.weather.fault = SiteFault(self.description.sites.index(site), mechanism, kind)
        self._wait_for_listener(site, listens=kind != "refused")

    def clear_fault(self) -> None:
        fault, self.weather.fault = self.weather.fault, None
        if fault is not None:
            self._wait_for_listener(self.description.sites[fault.site], listens=True)

    def _wait_for_listener(self, site: str, *, listens: bool) -> None:
        """Wait until the site's listener is open or closed: it polls its weather."""
        command = ["ssh", "-F", str(self.description.ssh_config), site, "true"]

        def has_followed() -> bool:
            stderr = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            return ("Connection refused" in stderr) != listens

        assert eventually(has_followed), f"the listener of {site} does not follow the weather"

    def gather(self, **changes: Any) -> Report:
        bindings = {"sources": list(SOURCES), "compute": ["ncsa"], "destination": ["sdsc"]}
        sizes = {"file_bytes": FILE_BYTES, "result_bytes": 5 * FILE_BYTES}
        return self._run("gather", bindings, sizes, **changes)

    def circle(self, **changes: Any) -> Report:
        return self._run("circle", {"ring": list(RING)}, {"file_bytes": FILE_BYTES}, **changes)

    def _run(
        self,
        probe: str,
        bindings: dict[str, list[str]],
        parameters: dict[str, Any],
        *,
        resources: Mapping[str, ResourceConfig] | None = None,
        seconds_left_at: Mapping[str, float] | None = None,
    ) -> Report:
        """Run *probe*; at the start of a stage in *seconds_left_at*, shorten the time that is left."""
        clock, seconds_left = RunClock(LIMIT_SECONDS), seconds_left_at or {}

        def on_stage(stage: str) -> None:
            if stage in seconds_left:
                clock.leave(seconds_left[stage])

        assignment = Assignment(
            series=f"{probe}-test",
            slot=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(self._slots)),
            reporter="home",
            probe=probe,
            bindings=bindings,
            resources={**self.description.resources, **(resources or {})},
            parameters=parameters,
            limit_seconds=LIMIT_SECONDS,
        )
        return reporter.run(assignment, on_stage=on_stage, tools=reporter.RunnerTools(monotonic=clock))

    def scratch_files(self) -> list[Path]:
        """Return the files that runs have left at the sites."""
        scratches = [Path(resource.scratch) for resource in self.description.resources.values()]
        return [file for scratch in scratches for file in scratch.rglob("*") if not file.is_dir()]


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshGrid]:
    # With a fault of the job, the job computes for this long before it is killed.
    weather = FaultWeather(seconds={"compute": 0.5})
    options = LocalGridOptions(sites=7)
    with running_sites(tmp_path_factory.mktemp("grid"), weather=weather, options=options) as description:
        yield SshGrid(description, weather)


@pytest.fixture
def grid(sites: SshGrid) -> Iterator[SshGrid]:
    """The sites without a fault; an injected fault is cleared after the test."""
    yield sites
    sites.clear_fault()
