"""Gather, Circle and PreCo over every way to reach sites: what they measure, how they fail, what they leave.

The faults are provoked for real, at the moment at which they hurt, over every way that has code of its own
for what breaks: who copies makes no difference to a batch system, nor the batch system to a login.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.server_process import free_port
from reporters.report import Report
from tests.probes import ways
from tests.probes.ways import COMPUTE, DESTINATION, SOURCES, Way, damage, found, open_way, with_proxy
from tests.reporters.needs import needs
from tests.waiting import eventually

pytestmark = pytest.mark.grid
SOURCE = SOURCES[0]


@pytest.fixture(scope="module", params=list(ways.NEEDED))
def shared_way(request: pytest.FixtureRequest) -> Iterator[Way]:
    needs(*ways.NEEDED[request.param])
    with open_way(request.param) as way:
        yield way


def over(*names: str) -> pytest.MarkDecorator:
    """Only over these ways."""
    return pytest.mark.parametrize("shared_way", names, indirect=True)


over_each_login = over("ssh+fork")
over_each_copy = over("ssh+fork", "gridftp+fork")
over_each_batch_system = over("ssh+fork", "ssh+slurm")


@pytest.fixture
def way(shared_way: Way) -> Iterator[Way]:
    """The way in fine weather. Whatever a test does to it, nothing may be left of its runs."""
    yield shared_way
    shared_way.mend()
    assert shared_way.files() == []
    assert eventually(shared_way.is_idle), (shared_way.jobs(), shared_way.processes())


@dataclass
class SmallDisk:
    """A file system of a few megabytes."""

    root: Path

    def fill(self) -> None:
        with (self.root / "filler").open("wb") as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
                filler.flush()

    def empty(self) -> None:
        (self.root / "filler").unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    tmp_path.chmod(0o755)
    root = tmp_path / "small"
    root.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "small", str(root)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root can mount a small disk")
    yield SmallDisk(root)
    subprocess.run(["umount", str(root)], check=True)


def metrics(report: Report) -> dict[str, float]:
    return {metric.name: metric.value for metric in report.metrics}


def assert_failed(report: Report, *, stage: str, resource: str, said: str) -> None:
    assert report.outcome == "failed", report.reason
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == (stage, resource), report.reason
    assert said in report.reason


@pytest.mark.parametrize("probe", list(ways.BINDINGS))
def test_it_passes_and_leaves_nothing(way: Way, probe: str) -> None:
    report = way.run(probe)
    assert report.outcome == "passed", report.reason
    measured = metrics(report)
    rates = [value for name, value in measured.items() if name.endswith("bytes_per_second")]
    assert len(rates) >= 2
    assert all(rate > 0 for rate in rates)
    if probe != "circle":
        assert measured["queue.seconds"] >= 0


@over_each_copy
def test_a_server_that_is_down_is_named(way: Way) -> None:
    closed = {"port": free_port("127.0.0.1"), "host": "127.0.0.1"}
    resource = way.resources[SOURCE]
    if way.servers:
        down = replace(resource, transfer={**resource.transfer, **closed})
    else:
        down = replace(resource, shell={**resource.shell, "port": closed["port"]})
    report = way.run("circle", resources={SOURCE: down})
    stage = "transfer_ring" if way.servers else "init"
    assert_failed(report, stage=stage, resource=SOURCE, said="Connection refused")


@over_each_login
def test_a_login_that_is_denied_is_named(way: Way) -> None:
    way.break_(SOURCE, "login", "denied")
    assert_failed(way.run("gather"), stage="init", resource=SOURCE, said="Permission denied")


@over("ssh+fork")  # a GridFTP server that is killed in mid-transfer has tests of its own
def test_a_connection_that_is_reset_in_mid_transfer_is_noticed(way: Way) -> None:
    way.break_(SOURCE, "inbound", "reset")
    report = way.run("gather", file_bytes=5_000_000)
    assert report.outcome == "failed"
    assert report.failure is not None
    assert report.failure.stage == "transfer_data"


@over_each_copy
def test_a_full_destination_is_named_and_keeps_no_half_file(way: Way, small_disk: SmallDisk) -> None:
    full = replace(way.resources[DESTINATION], scratch=str(small_disk.root))
    report = way.run("gather", at_stage={"transfer_results": small_disk.fill}, resources={DESTINATION: full})
    assert_failed(report, stage="transfer_results", resource=DESTINATION, said="o space left on device")
    small_disk.empty()
    assert [file for file in small_disk.root.rglob("*") if not file.is_dir()] == []


@over_each_copy
def test_a_bit_that_flips_is_noticed_by_the_checksum(way: Way) -> None:
    report = way.run(
        "gather", at_stage={"transfer_data": lambda: damage(found(way.scratch(SOURCE), "source.dat"))}
    )
    said = f"the input from {SOURCE} was damaged on its way to {COMPUTE}"
    assert_failed(report, stage="compute", resource=COMPUTE, said=said)


@over_each_login
def test_a_compiler_that_is_missing_is_named(way: Way) -> None:
    way.break_(COMPUTE, "compile", "missing")
    assert_failed(way.run("gather"), stage="init", resource=COMPUTE, said="cc is not installed")


@over_each_batch_system
def test_an_executable_that_is_missing_is_named(way: Way) -> None:
    report = way.run(
        "gather", at_stage={"queue_wait": lambda: found(way.scratch(COMPUTE), "aggregate").unlink()}
    )
    assert_failed(report, stage="compute", resource=COMPUTE, said="aggregate")
    assert "not found" in report.reason or "No such file" in report.reason


@over_each_batch_system
def test_a_job_is_killed_at_its_wall_limit(way: Way) -> None:
    report = way.run("gather", at_stage={"queue_wait": lambda: never_end(way)}, wall_seconds=1.0)
    assert_failed(report, stage="compute", resource=COMPUTE, said="exceeded its wall limit of 1 s")


@over_each_batch_system
def test_a_job_that_never_starts_ends_with_the_run(way: Way) -> None:
    if way.cluster is not None:
        way.cluster.close_partitions()
    else:
        way.break_(COMPUTE, "queue", "stuck")
    try:
        for limit_seconds in (4.0, 12.0, 36.0):  # a slow machine needs longer until there is a job
            report = way.run("gather", limit_seconds=limit_seconds)
            failure = report.failure  # between two stages time may be over as well, at no resource
            if failure is None or (failure.stage, failure.resource) == ("queue_wait", COMPUTE):
                break
    finally:
        if way.cluster is not None:
            way.cluster.open_partitions()
    assert report.outcome == "timed_out", report.reason
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("queue_wait", COMPUTE)


@over_each_batch_system
def test_a_job_that_somebody_kills_is_named(way: Way) -> None:
    if way.cluster is None:
        way.break_(COMPUTE, "compute", "killed")
        said = "was killed by signal 9"
        report = way.run("gather")
    else:
        said = "cancelled"
        report = way.run(
            "gather", at_stage={"queue_wait": lambda: never_end(way), "compute": lambda: cancel_all(way)}
        )
    assert_failed(report, stage="compute", resource=COMPUTE, said=said)


@over_each_batch_system
def test_output_that_cannot_be_read_is_quoted(way: Way) -> None:
    mend: list[Callable[[], None]] = []

    def spoil() -> None:
        mend.append(way.install(COMPUTE, "sha256sum", "echo 'Segmentation fault?'"))

    try:
        report = way.run("gather", at_stage={"queue_wait": spoil})
    finally:
        for undo in mend:
            undo()
    said = f"unreadable output of sha256sum at {COMPUTE}: 'Segmentation fault?'"
    assert_failed(report, stage="compute", resource=COMPUTE, said=said)


def security_of(way: Way) -> Security:
    assert way.security is not None
    return way.security


@over("gridftp+fork")
def test_a_proxy_that_is_missing_is_named_before_anything_is_moved(way: Way, tmp_path: Path) -> None:
    report = way.run("circle", resources=with_proxy(way, tmp_path / "nothing"))
    assert_failed(report, stage="init", resource=SOURCE, said="no valid proxy")


@over("gridftp+fork")
def test_a_proxy_that_has_expired_says_when(way: Way) -> None:
    report = way.run("circle", resources=with_proxy(way, security_of(way).expired_proxy(hours=47)))
    assert_failed(report, stage="init", resource=SOURCE, said="expired 47 h ago")


@over("gridftp+fork")
def test_a_proxy_that_ends_too_soon_for_the_forecast_says_both_times(way: Way) -> None:
    short = with_proxy(way, security_of(way).proxy("short", minutes=5))
    report = way.run("circle", resources=short, expected_seconds={"total.seconds": 540.0})
    assert_failed(report, stage="init", resource=SOURCE, said="the run needs about 9 min")
    assert way.run("circle", resources=short, expected_seconds={"total.seconds": 30.0}).outcome == "passed"


def never_end(way: Way) -> None:
    """Let the job of the run that is under way sleep instead of aggregating."""
    found(way.scratch(COMPUTE), "aggregate").write_text("#!/bin/sh\nexec sleep 600\n")


def cancel_all(way: Way) -> None:
    assert way.cluster is not None
    for job in way.cluster.run("squeue", "-h", "-o", "%i").split():
        way.cluster.run("scancel", job)
