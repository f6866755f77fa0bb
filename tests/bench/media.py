"""The applications that tell storage media apart, on an emulated RAID of disks and on emulated flash."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from probes.base import Value
from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig
from tests.bench.base import Result

DISKS, FLASH = "p690-raid5", "flash"
RUNS: Mapping[str, Mapping[str, Value]] = {
    "lookups": {"rows": 20_000, "lookups": 200},
    "em_bfs": {"dimension": 12},
}


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-media-") as scratch:
        try:
            emulator = build.emulator(Path(scratch))
        except MissingProgram as error:
            print(f"storage media are not told apart: {error}")
            return []
        disks, flash = (_metrics(emulator, Path(scratch), profile) for profile in (DISKS, FLASH))
    gains = {name: flash[name] / disks[name] for name in disks if name.endswith("_per_second")}
    lookup, scan = gains["lookup.operations_per_second"], gains["scan.bytes_per_second"]
    search = gains["traverse.vertices_per_second"]
    return [
        Result(
            "look-ups gain more than scans", lookup / scan, 2.0, "higher", {"look-ups": lookup, "scans": scan}
        ),
        Result("a search of a graph gains", search, 2.0, "higher", {"search": search}),
    ]


def _metrics(emulator: Path, scratch: Path, profile: str) -> dict[str, float]:
    directory = scratch / profile
    directory.mkdir()
    found: dict[str, float] = {}
    with mounted(emulator, directory, profiles.load(profile)):
        for probe, parameters in RUNS.items():
            assignment = Assignment(
                series=probe,
                slot=datetime(2026, 3, 1, tzinfo=UTC),
                reporter="home",
                probe=probe,
                bindings={"target": [profile]},
                resources={profile: ResourceConfig(profile, profile, str(directory))},
                parameters=parameters,
                limit_seconds=600.0,
            )
            report = reporter.run(assignment)
            if report.outcome != "passed":
                raise RuntimeError(f"{probe} on {profile}: {report.reason}")
            found.update({metric.name: metric.value for metric in report.metrics})
    return found
