"""Seven real SSH sites on loopback whose weather the tests dictate, one set for each worker process."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
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
from tests.probes.ways import Weather
from tests.waiting import eventually

FILE_BYTES = 200_000
SOURCES = ("anl", "iu", "ornl", "tacc", "purdue")
RING = ("iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl")


@dataclass
class Grid:
    """The sites, and how to run a probe over them."""

    description: GridDescription
    weather: Weather
    _slots: Iterator[int] = field(default_factory=itertools.count)

    def break_(self, site: str, mechanism: str, kind: str) -> None:
        self.weather.fault = SiteFault(self.description.sites.index(site), mechanism, kind)
        self._until(site, listens=kind != "refused")

    def mend(self) -> None:
        broken, self.weather.fault = self.weather.fault, None
        if broken is not None:
            self._until(self.description.sites[broken.site], listens=True)

    def _until(self, site: str, *, listens: bool) -> None:
        """Wait until the site's listener is open or closed: it looks at its weather now and then."""
        command = ["ssh", "-F", str(self.description.ssh_config), site, "true"]

        def follows() -> bool:
            said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            return ("Connection refused" in said) != listens

        assert eventually(follows), f"the listener of {site} does not follow the weather"

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
        resources: dict[str, ResourceConfig] | None = None,
        limit_seconds: float = 60.0,
    ) -> Report:
        return reporter.run(
            Assignment(
                series=f"{probe}-test",
                slot=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(self._slots)),
                reporter="home",
                probe=probe,
                bindings=bindings,
                resources={**self.description.resources, **(resources or {})},
                parameters=parameters,
                limit_seconds=limit_seconds,
            )
        )

    def scratch_files(self) -> list[Path]:
        """What runs have left at the sites."""
        scratches = [Path(resource.scratch) for resource in self.description.resources.values()]
        return [file for scratch in scratches for file in scratch.rglob("*") if not file.is_dir()]


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    # Long enough for a job to begin before it is killed.
    weather = Weather(seconds={"compute": 0.5})
    options = LocalGridOptions(sites=7)
    with running_sites(tmp_path_factory.mktemp("grid"), weather=weather, options=options) as description:
        yield Grid(description, weather)


@pytest.fixture
def grid(sites: Grid) -> Iterator[Grid]:
    """The sites in fine weather; whatever a test breaks is mended after it."""
    yield sites
    sites.mend()
