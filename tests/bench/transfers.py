"""Gather's parallel copies, against the same copies made by hand with the same tool at the same time."""

from __future__ import annotations

import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from monitor.testbed.sites import GridDescription, Options, running_sites
from probes.base import in_parallel
from probes.grid import Location
from probes.steps import random_file
from reporters.config import Assignment
from reporters.deadline import Deadline
from reporters.grid import Grid
from tests.bench.base import Result, interleaved

FILE_BYTES = 50_000_000
TIMES = 7


def measure() -> list[Result]:
    with (
        tempfile.TemporaryDirectory() as directory,
        running_sites(Path(directory), options=Options(sites=7)) as sites,
    ):
        return [_measure(sites)]


def _measure(sites: GridDescription) -> Result:
    grid = Grid(_assignment(sites), Deadline(600.0, time.monotonic), lambda *_: None)
    files = [Location(name, f"{grid.scratch(name)}/file") for name in sites.sources]
    targets = {file.resource: f"{grid.scratch(sites.compute)}/{file.resource}" for file in files}
    in_parallel(lambda file: random_file(grid, file, FILE_BYTES), files)

    def ours() -> None:
        in_parallel(lambda file: grid.copy(file, Location(sites.compute, targets[file.resource])), files)

    def by_hand() -> None:
        in_parallel(lambda file: _scp(sites, file, targets[file.resource] + ".by-hand"), files)

    try:
        ours_seconds, by_hand_seconds = interleaved(ours, by_hand, TIMES)
    finally:
        grid.clean_up()
    rate = FILE_BYTES * len(files) / 1e6
    return Result(
        name="five copies at once / the same by hand",
        ratio=by_hand_seconds / ours_seconds,
        target=0.8,
        better="higher",
        figures={"ours, MB/s": rate / ours_seconds, "by hand, MB/s": rate / by_hand_seconds},
    )


def _scp(sites: GridDescription, file: Location, target: str) -> None:
    """To a new file that then takes the old one's place, as ours does: to overwrite one is much quicker."""
    copy = f"scp -B -q {file.path} {sites.compute}:{target}.part"
    for resource, command in ((file.resource, copy), (sites.compute, f"mv {target}.part {target}")):
        subprocess.run(["ssh", "-F", str(sites.ssh_config), resource, command], check=True)


def _assignment(sites: GridDescription) -> Assignment:
    bindings = {"sources": list(sites.sources), "compute": [sites.compute]}
    slot = datetime(2026, 1, 1, tzinfo=UTC)
    return Assignment("bench", slot, "home", "gather", bindings, sites.resources)
