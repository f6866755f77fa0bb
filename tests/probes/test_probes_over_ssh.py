"""Gather and Circle over seven real SSH sites: what they measure, and what only SSH sites can do to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reporters.report import Report
from tests.probes.conftest import FILE_BYTES, RING, SOURCES, Grid

pytestmark = pytest.mark.grid


def metrics(report: Report) -> dict[str, float]:
    return {metric.name: metric.value for metric in report.metrics}


@pytest.fixture(scope="module")
def gathered(sites: Grid) -> Report:
    """Of a run of Gather that passed and left nothing."""
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
    measured = metrics(gathered)
    for source in SOURCES:
        seconds = measured[f"transfer.{source}.seconds"]
        assert measured[f"transfer.{source}.bytes_per_second"] == pytest.approx(FILE_BYTES / seconds)
    assert measured["queue.seconds"] >= 0
    assert measured["transfer.results.bytes_per_second"] > 0


def test_gathers_sources_send_at_the_same_time(gathered: Report) -> None:
    measured = metrics(gathered)
    (stage,) = (stage for stage in gathered.stages if stage.name == "transfer_data")
    assert stage.seconds < sum(measured[f"transfer.{source}.seconds"] for source in SOURCES)


def test_circle_measures_every_hop_and_every_checksum(grid: Grid) -> None:
    report = grid.circle()
    assert report.outcome == "passed", report.reason
    measured = metrics(report)
    for number, (source, target) in enumerate(zip(RING, RING[1:] + RING[:1], strict=True), start=1):
        hop = f"hop.{number}.{source}-{target}"
        assert measured[f"{hop}.bytes_per_second"] > 0
        assert measured[f"{hop}.checksum.seconds"] > 0
    assert grid.scratch_files() == []


def test_a_corrupted_byte_in_the_ring_names_the_hop_and_the_next_run_is_clean(grid: Grid) -> None:
    grid.break_("purdue", "inbound", "corrupt")
    report = grid.circle()
    assert report.outcome == "failed"
    assert "damaged in hop" in report.reason
    assert "purdue" in report.reason
    grid.mend()
    assert grid.circle().outcome == "passed"


def test_an_unknown_host_is_named(grid: Grid) -> None:
    lost = replace(grid.description.resources["iu"], shell={"kind": "ssh", "host": "no-such-host.invalid"})
    report = grid.circle(resources={"iu": lost})
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("init", "iu")
    assert "no-such-host.invalid" in report.reason


def test_a_wrong_key_is_a_refused_login(grid: Grid, tmp_path: Path) -> None:
    config = grid.description.ssh_config.read_text()
    key = next(line.split()[1] for line in config.splitlines() if line.strip().startswith("IdentityFile"))
    foreign = tmp_path / "key"
    foreign.write_bytes((Path(grid.description.directory) / "sites" / "iu" / "host_key").read_bytes())
    foreign.chmod(0o600)
    (tmp_path / "ssh_config").write_text(config.replace(key, str(foreign)))
    shell = {**grid.description.resources["iu"].shell, "config_file": str(tmp_path / "ssh_config")}
    report = grid.circle(resources={"iu": replace(grid.description.resources["iu"], shell=shell)})
    assert report.outcome == "failed"
    assert "Permission denied" in report.reason
    assert "iu" in report.reason


def test_a_link_that_stalls_ends_as_timed_out(grid: Grid) -> None:
    grid.break_("ornl", "inbound", "stall")
    for limit_seconds in (4.0, 12.0, 36.0):  # a slow machine needs longer until there is a transfer
        report = grid.gather(limit_seconds=limit_seconds)
        if report.failure is None or report.failure.stage == "transfer_data":
            break
    assert report.outcome == "timed_out"
    assert report.failure is not None
    assert report.failure.stage == "transfer_data"
    grid.mend()
    assert grid.gather().outcome == "passed"
    assert grid.scratch_files() == []
