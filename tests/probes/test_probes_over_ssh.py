"""Gather and Circle over seven real SSH sites: metrics, and failures that only SSH sites can cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reporters.report import Report
from tests.probes.conftest import FILE_BYTES, RING, SOURCES, SshGrid
from tests.probes.runs import metrics

pytestmark = pytest.mark.grid


@pytest.fixture(scope="module")
def gathered(sites: SshGrid) -> Report:
    """The report of a run of Gather that passed and left no file."""
    report = sites.gather()
    assert report.outcome == "passed", report.reason
    assert sites.scratch_files() == []
    return report


def test_gather_measures_every_source_the_queue_and_the_results(gathered: Report) -> None:
    assert [stage.name for stage in gathered.stages] == [
        "init",
        "stage_data",
        "build_executable",
        "transfer_data",
        "queue_wait",
        "compute",
        "transfer_results",
        "cleanup",
    ]
    values = metrics(gathered)
    for source in SOURCES:
        seconds = values[f"transfer.{source}.seconds"]
        assert values[f"transfer.{source}.bytes_per_second"] == pytest.approx(FILE_BYTES / seconds)
    assert values["queue.seconds"] >= 0
    assert values["transfer.results.bytes_per_second"] > 0


def test_circle_measures_every_hop_and_every_checksum(grid: SshGrid) -> None:
    report = grid.circle()
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    for number, (source, target) in enumerate(zip(RING, RING[1:] + RING[:1], strict=True), start=1):
        hop = f"hop.{number}.{source}-{target}"
        assert values[f"{hop}.bytes_per_second"] > 0
        assert values[f"{hop}.checksum.seconds"] > 0
    assert grid.scratch_files() == []


@pytest.mark.nightly
def test_a_corrupted_byte_in_the_ring_names_the_hop_and_the_next_run_is_clean(grid: SshGrid) -> None:
    grid.inject_fault("purdue", "inbound", "corrupt")
    report = grid.circle()
    assert report.outcome == "failed"
    assert "damaged in hop" in report.reason
    assert "purdue" in report.reason
    grid.clear_fault()
    assert grid.circle().outcome == "passed"


@pytest.mark.nightly
def test_an_unknown_host_is_named(grid: SshGrid) -> None:
    unknown = {"kind": "ssh", "host": "no-such-host.invalid"}
    report = grid.circle(resources={"iu": replace(grid.description.resources["iu"], shell=unknown)})
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("init", "iu")
    assert "no-such-host.invalid" in report.reason


@pytest.mark.nightly
def test_a_wrong_key_is_a_refused_login(grid: SshGrid, tmp_path: Path) -> None:
    config = grid.description.ssh_config.read_text()
    key = next(line.split()[1] for line in config.splitlines() if line.strip().startswith("IdentityFile"))
    wrong_key = tmp_path / "key"
    wrong_key.write_bytes((Path(grid.description.directory) / "sites" / "iu" / "host_key").read_bytes())
    wrong_key.chmod(0o600)
    (tmp_path / "ssh_config").write_text(config.replace(key, str(wrong_key)))
    shell = {**grid.description.resources["iu"].shell, "config_file": str(tmp_path / "ssh_config")}
    report = grid.circle(resources={"iu": replace(grid.description.resources["iu"], shell=shell)})
    assert report.outcome == "failed"
    assert "Permission denied" in report.reason
    assert "iu" in report.reason


@pytest.mark.nightly
def test_a_link_that_stalls_ends_as_timed_out(grid: SshGrid) -> None:
    grid.inject_fault("ornl", "inbound", "stall")
    report = grid.gather(seconds_left_at={"transfer_data": 2.0})
    assert report.outcome == "timed_out"
    assert report.failure is not None
    assert report.failure.stage == "transfer_data"
    grid.clear_fault()
    assert grid.gather().outcome == "passed"
    assert grid.scratch_files() == []
