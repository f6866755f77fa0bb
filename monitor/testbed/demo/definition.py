"""What the demo watches: the series that run over a grid of this machine, their files scaled down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monitor.gridfile.define import AlertDefinition, SeriesDefinition
from monitor.testbed.wan.services import RESOURCE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE_BYTES = 1_000_000
RESULT_BYTES = 5_000_000
PROJECTIONS, PROJECTION_SIZE = 61, 64
LIMIT_SECONDS = 90.0
SITES = ("anl", "iu", "ornl", "tacc", "purdue", "ncsa", "sdsc")


@dataclass(frozen=True)
class Ground:
    """Where series run: what their names and those of the sites' resources end in, and their suite.

    Two grounds share no series, so that no history mixes two grids.
    """

    series: str
    resources: str
    suite: str


LOCAL = Ground(series="-main", resources="", suite="main")
WAN = Ground(series="-wan", resources=RESOURCE_SUFFIX, suite="emulated-wan")
GROUNDS = (LOCAL, WAN)


def series(ground: Ground = LOCAL, *, scheduled: bool) -> list[SeriesDefinition]:
    """Gather from five sources to NCSA, results to SDSC, and Circle round all seven, every minute.

    PreCo from Argonne by way of NCSA to SDSC every other minute: it computes as long as the others together.
    """
    gather = {
        "sources": ["anl", "iu", "ornl", "tacc", "purdue"],
        "compute": ["ncsa"],
        "destination": ["sdsc"],
    }
    circle = {"ring": ["iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl"]}
    preco = {"source": ["anl"], "compute": ["ncsa"], "destination": ["sdsc"]}
    files = {"file_bytes": FILE_BYTES}
    image = {"projections": PROJECTIONS, "size": PROJECTION_SIZE}
    every_minute, every_other_minute = "* * * * *", "*/2 * * * *"
    return [
        _series(ground, "gather", gather, {**files, "result_bytes": RESULT_BYTES}, every_minute, scheduled),
        _series(ground, "circle", circle, files, every_minute, scheduled),
        _series(ground, "preco", preco, image, every_other_minute, scheduled),
    ]


def alerts() -> list[AlertDefinition]:
    """One rule over whatever runs: told to the log, where it needs no receiver."""
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
    ground: Ground,
    probe: str,
    sites: Mapping[str, Sequence[str]],
    parameters: Mapping[str, Any],
    schedule: str,
    enabled: bool,
) -> SeriesDefinition:
    """The series of *probe*, its roles bound to the resources of *sites*."""
    return SeriesDefinition(
        name=f"{probe}{ground.series}",
        probe=probe,
        bindings={role: [f"{name}{ground.resources}" for name in names] for role, names in sites.items()},
        parameters=parameters,
        schedule=schedule,
        enabled=enabled,
        limit_seconds=LIMIT_SECONDS,
        suite=ground.suite,
    )
