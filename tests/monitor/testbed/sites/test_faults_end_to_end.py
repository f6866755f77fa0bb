"""A fault at a site fails a real run in the stage that meets it, and the next run is clean."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.testbed.sites import GridDescription
from monitor.testbed.weather.conditions import SiteFault
from reporters.config import Assignment
from reporters.report import Report, rfc3339
from reporters.run import run
from tests.monitor.testbed.sites.local_grid import Client, conditions

IU, NCSA = 1, 5
SLOT = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = 2
MECHANISMS = ("compile", "queue", "outbound")  # of computing, beside that of the job itself

# A fault, the probe that meets it, the stage that fails, the resource to blame, and words of the message.
ExpectedFailure = tuple[SiteFault, str, str, str, str]
COVERING: list[ExpectedFailure] = [
    (SiteFault(IU, "disk", "full"), "gather", "stage_data", "iu", "No space left on device"),
    (SiteFault(IU, "inbound", "corrupt"), "circle", "transfer_ring", "iu", "damaged in hop 1 from anl to iu"),
    (SiteFault(NCSA, "compute", "exit"), "gather", "compute", "ncsa", "exit status 3"),
]
OTHERS: list[ExpectedFailure] = [
    (SiteFault(IU, "unlink", "busy"), "gather", "cleanup", "iu", "Device or resource busy"),
    (SiteFault(NCSA, "compile", "missing"), "gather", "init", "ncsa", "cc is not installed"),
    (SiteFault(NCSA, "queue", "rejected"), "gather", "queue_wait", "ncsa", "Batch job submission failed"),
    (SiteFault(NCSA, "outbound", "reset"), "gather", "transfer_results", "sdsc", "ncsa:"),
    (SiteFault(IU, "disk", "unwritable"), "circle", "transfer_ring", "iu", "Permission denied"),
    (SiteFault(IU, "inbound", "reset"), "gather", "transfer_data", "ncsa", "iu:"),
    (SiteFault(NCSA, "compile", "crash"), "gather", "build_executable", "ncsa", "internal compiler error"),
    (SiteFault(NCSA, "compute", "killed"), "gather", "compute", "ncsa", "killed by signal 9"),
]


def assigned(grid: GridDescription, probe: str, series: str) -> Assignment:
    bindings: dict[str, dict[str, Sequence[str]]] = {
        "gather": {"sources": ["anl", "iu"], "compute": [grid.compute], "destination": [grid.destination]},
        "circle": {"ring": ["anl", "iu", grid.compute, grid.destination]},
    }
    sizes = {"gather": {"file_bytes": 100_000, "result_bytes": 200_000}, "circle": {"file_bytes": 100_000}}
    return Assignment(
        series=series,
        slot=SLOT,
        reporter="test",
        probe=probe,
        bindings=bindings[probe],
        resources=grid.resources,
        parameters=sizes[probe],
        limit_seconds=240.0,
    )


def scratch_files(client: Client) -> set[Path]:
    """Return the files in the scratch directories of all sites; tests before may have left some."""
    return {path for name in client.grid.sites for path in client.scratch(name).rglob("*") if path.is_file()}


@pytest.mark.grid
@pytest.mark.parametrize(
    "faults",
    [pytest.param(COVERING, id="covering"), pytest.param(OTHERS, id="others", marks=pytest.mark.nightly)],
)
def test_a_broken_site_fails_the_run_in_its_stage_and_leaves_no_file(
    client: Client, faults: list[ExpectedFailure]
) -> None:
    def broken(number: int) -> Report:
        fault, probe, *_ = faults[number]
        series = f"broken-{number}"
        client.weather.by_label[f"{series}@{rfc3339(SLOT)}"] = conditions(fault=fault)
        return run(assigned(client.grid, probe, series))

    files_before = scratch_files(client)
    with ThreadPoolExecutor(AT_ONCE) as lanes:
        reports = list(lanes.map(broken, range(len(faults))))
    for (fault, _, stage, resource, message), report in zip(faults, reports, strict=True):
        assert report.outcome == "failed", (fault, report.reason)
        assert report.failure is not None
        assert (report.failure.stage, report.failure.resource) == (stage, resource), (fault, report.reason)
        assert message in report.reason, fault
    assert scratch_files(client) == files_before


@pytest.mark.grid
@pytest.mark.parametrize(
    "mechanism", ["compute", *(pytest.param(name, marks=pytest.mark.nightly) for name in MECHANISMS)]
)
@pytest.mark.nightly
def test_a_fault_of_computing_does_not_break_a_ring(client: Client, mechanism: str) -> None:
    kinds = {"compile": "missing", "queue": "rejected", "compute": "killed", "outbound": "reset"}
    series = f"ring-{mechanism}"
    fault = SiteFault(NCSA, mechanism, kinds[mechanism])
    client.weather.by_label[f"{series}@{rfc3339(SLOT)}"] = conditions(fault=fault)
    report = run(assigned(client.grid, "circle", series))
    assert report.outcome == "passed", report.reason


@pytest.mark.grid
@pytest.mark.parametrize("probe", ["gather", "circle"])
@pytest.mark.nightly
def test_without_weather_probes_pass_and_leave_nothing(client: Client, probe: str) -> None:
    files_before = scratch_files(client)
    report = run(assigned(client.grid, probe, f"fair-{probe}"))
    assert report.outcome == "passed", report.reason
    assert scratch_files(client) == files_before
