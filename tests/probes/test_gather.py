"""Gather against a fake grid: properties that are proven without real sites."""

from __future__ import annotations

import threading
from typing import cast

import probes
from probes import gather
from probes.base import checked_plan
from probes.grid import CopyOptions, Grid, Location, Transferred

SOURCES = ["anl", "iu", "ornl", "tacc", "purdue"]


class MeetingGrid:
    """A grid whose copies each wait until all sources are copying."""

    def __init__(self) -> None:
        self._all_copying = threading.Barrier(len(SOURCES), timeout=60)

    def expected_seconds(self, metric: str) -> float | None:
        return None

    def scratch(self, resource: str) -> str:
        return f"/scratch/{resource}"

    def copy(self, source: Location, target: Location, options: CopyOptions) -> Transferred:
        self._all_copying.wait()
        return Transferred(bytes=1000, seconds=2.0, streams=1, retries=1)


def test_gathers_sources_send_at_the_same_time() -> None:
    bindings = {"sources": SOURCES, "compute": ["ncsa"], "destination": ["sdsc"]}
    plan = checked_plan(probes.load("gather"), bindings, {})
    values = {
        metric.name: metric.value
        for metric in gather.Probe(cast("Grid", MeetingGrid()), plan).transfer_data()
    }
    # Of all copies together: the bytes of five in the time of the slowest.
    assert values["transfer.seconds"] == 2.0
    assert values["transfer.bytes_per_second"] == 5 * 1000 / 2.0
    assert (values["transfer.streams"], values["transfer.retries"]) == (5, 5)
