"""Define the demo's series and alerts over a test-bed of this machine, with files scaled down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import probes
from monitor.operations.gridfile.define import AlertDefinition, SeriesDefinition
from monitor.testbed.wan.services import RESOURCE_SUFFIX
from reporters import config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE_BYTES = 1_000_000
RESULT_BYTES = 5_000_000
PROJECTIONS, PROJECTION_SIZE = 61, 64
LIMIT_SECONDS = 90.0
PRECO_LIMIT_SECONDS = 170.0  # it takes 41 s, and up to 140 s with the rarest outliers
SITES = ("anl", "iu", "ornl", "tacc", "purdue", "ncsa", "sdsc")
PLACES = {  # latitude and longitude of the sites, in degrees
    "anl": (41.7, -88.0),
    "iu": (39.2, -86.5),
    "ornl": (35.9, -84.3),
    "tacc": (30.4, -97.7),
    "purdue": (40.4, -86.9),
    "ncsa": (40.1, -88.2),
    "sdsc": (32.9, -117.2),
}
REMOTE_REPORTERS = ("ornl", "tacc")  # sites with a reporter of their own, of the same name
DISK_BYTES = 4_000_000


@dataclass(frozen=True)
class DemoGrid:
    """A grid that the demo can use.

    Attributes:
        series: suffix of the names of all series on this grid, so that no history mixes two grids.
        resources: suffix of the names of all resources.
        suite: name of the suite.
    """

    series: str
    resources: str
    suite: str


LOCAL = DemoGrid(series="-main", resources="", suite="main")
WAN = DemoGrid(series="-wan", resources=RESOURCE_SUFFIX, suite="emulated-wan")
GRIDS = (LOCAL, WAN)


def series(grid: DemoGrid = LOCAL, *, scheduled: bool) -> list[SeriesDefinition]:
    """Return series of Gather and Circle every minute, and of PreCo every third minute.

    Gather copies files from five sources to NCSA and a result from NCSA to SDSC. Circle copies a file round
    all seven sites. PreCo copies data from Purdue to NCSA and results to SDSC, and takes more than three
    times as long as Gather. The sites are those of the study. If not *scheduled*, the series are disabled.
    """
    gather = {
        "sources": ["anl", "iu", "ornl", "tacc", "purdue"],
        "compute": ["ncsa"],
        "destination": ["sdsc"],
    }
    circle = {"ring": ["iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl"]}
    preco = {"source": ["purdue"], "compute": ["ncsa"], "destination": ["sdsc"]}
    files = {"file_bytes": FILE_BYTES}
    image = {"projections": PROJECTIONS, "size": PROJECTION_SIZE}
    every_minute, every_third_minute = "* * * * *", "*/3 * * * *"
    return [
        _series(grid, "gather", gather, {**files, "result_bytes": RESULT_BYTES}, every_minute, scheduled),
        _series(grid, "circle", circle, files, every_minute, scheduled),
        replace(
            _series(grid, "preco", preco, image, every_third_minute, scheduled),
            limit_seconds=PRECO_LIMIT_SECONDS,
        ),
    ]


def node(site: config.ResourceConfig, path: str) -> config.ResourceConfig:
    """Return the host of *site* as the reporter there sees it: without SSH, and with a scratch of its own.

    *path* is the PATH of its programs.
    """
    return config.ResourceConfig(  # noqa: S604 - describes access to a host, runs no program
        name=f"{site.name}-node",
        site=site.site,
        scratch=f"{site.scratch}-node",
        shell={"kind": "local", "path": path},
        transfer={"kind": "local"},
        batch=site.batch,
    )


def remote_series() -> list[SeriesDefinition]:
    """Return the series that the remote reporters run on their own hosts: a disk every minute, and memory."""
    return [
        SeriesDefinition(
            name=f"{probe}-{site}",
            probe=probe,
            bindings={"target": [f"{site}-node"]},
            parameters=parameters,
            schedule=schedule,
            limit_seconds=LIMIT_SECONDS,
            suite=LOCAL.suite,
            reporter=site,
        )
        for site in REMOTE_REPORTERS
        for probe, parameters, schedule in (
            ("disk", {"file_bytes": DISK_BYTES, "tool": "own"}, "* * * * *"),
            ("stream", probes.load("stream").trial, "*/5 * * * *"),
        )
    ]


def alerts() -> list[AlertDefinition]:
    """Return one alert rule for all series; its channel is the log, which needs no recipient."""
    return [
        AlertDefinition(
            "three-in-a-row",
            title="Three failures in a row",
            watches={"everything": True},
            condition="failures_in_row",
            threshold=3,
            notify=({"kind": "log"},),
        )
    ]


def _series(
    grid: DemoGrid,
    probe: str,
    sites: Mapping[str, Sequence[str]],
    parameters: Mapping[str, Any],
    schedule: str,
    enabled: bool,
) -> SeriesDefinition:
    """Return the series of *probe* with its roles bound to the resources of *sites*."""
    return SeriesDefinition(
        name=f"{probe}{grid.series}",
        probe=probe,
        bindings={role: [f"{name}{grid.resources}" for name in names] for role, names in sites.items()},
        parameters=parameters,
        schedule=schedule,
        enabled=enabled,
        limit_seconds=LIMIT_SECONDS,
        suite=grid.suite,
    )
