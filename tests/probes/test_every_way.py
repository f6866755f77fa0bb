"""Gather, Circle and PreCo over every way to use the sites: metrics, failures, and no remains.

Real faults are injected at the stage that they affect, over each way that has its own code for the part that
fails: the transfer makes no difference to a fault of the batch system.

``make test`` runs a covering choice: every probe and every way passes once (Circle over SSH in
test_probes_over_ssh.py), and every fault occurs over one way. The rest of the cross product is marked
``nightly``.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.server_process import free_port
from reporters.report import Report
from tests.probes import ways
from tests.probes.runs import metrics
from tests.probes.ways import COMPUTE, DESTINATION, SOURCES, Way, flip_bit, only_file, open_way, with_proxy
from tests.reporters.needs import needs
from tests.waiting import eventually

pytestmark = pytest.mark.grid
SOURCE = SOURCES[0]
SSH, SLURM, GRIDFTP = "ssh+fork", "ssh+slurm", "gridftp+fork"
COVERING = [(SLURM, "preco"), (GRIDFTP, "gather")]
OTHERS = [pair for pair in itertools.product((SSH, SLURM, GRIDFTP), ways.BINDINGS) if pair not in COVERING]


@pytest.fixture(scope="module")
def ways_by_name() -> Iterator[Callable[[str], Way]]:
    """Open a way at its first use and keep it open for all tests."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def opened(name: str) -> Way:
            needs(*ways.NEEDED[name])
            return stack.enter_context(open_way(name))

        yield opened


@pytest.fixture
def way(request: pytest.FixtureRequest, ways_by_name: Callable[[str], Way]) -> Iterator[Way]:
    """A way without a fault. After the test its runs must have left no file, job or process."""
    opened = ways_by_name(request.param)
    yield opened
    opened.clear_fault()
    assert opened.files() == []
    assert eventually(opened.is_idle), (opened.jobs(), opened.processes())


def over(way: str, *other_ways: str) -> pytest.MarkDecorator:
    """Run a test over *way*, and nightly over *other_ways*, too."""
    others = [pytest.param(name, marks=pytest.mark.nightly) for name in other_ways]
    return pytest.mark.parametrize("way", [way, *others], indirect=True)


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


def assert_failed(report: Report, *, stage: str, resource: str, message: str) -> None:
    assert report.outcome == "failed", report.reason
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == (stage, resource), report.reason
    assert message in report.reason


@pytest.mark.parametrize(
    ("way", "probe"),
    [*COVERING, *(pytest.param(*pair, marks=pytest.mark.nightly) for pair in OTHERS)],
    indirect=["way"],
)
def test_a_probe_passes_and_leaves_nothing(way: Way, probe: str) -> None:
    report = way.run(probe)
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    rates = [value for name, value in values.items() if name.endswith("bytes_per_second")]
    assert len(rates) >= 2
    assert all(rate > 0 for rate in rates)
    if probe != "circle":
        assert values["queue.seconds"] >= 0


@over(GRIDFTP, SSH)
@pytest.mark.nightly
def test_a_server_that_is_down_is_named(way: Way) -> None:
    closed = {"port": free_port("127.0.0.1"), "host": "127.0.0.1"}
    resource = way.resources[SOURCE]
    if way.servers:
        down = replace(resource, transfer={**resource.transfer, **closed})
    else:
        down = replace(resource, shell={**resource.shell, "port": closed["port"]})
    report = way.run("circle", resources={SOURCE: down})
    stage = "transfer_ring" if way.servers else "init"
    assert_failed(report, stage=stage, resource=SOURCE, message="Connection refused")


@over(SSH)
def test_a_login_that_is_denied_is_named(way: Way) -> None:
    way.inject_fault(SOURCE, "login", "denied")
    assert_failed(way.run("gather"), stage="init", resource=SOURCE, message="Permission denied")


@over(SSH)  # tests/reporters/test_gridftp.py kills a GridFTP server during a transfer
def test_a_connection_that_is_reset_during_a_transfer_fails_the_run(way: Way) -> None:
    way.inject_fault(SOURCE, "inbound", "reset")
    report = way.run("gather", file_bytes=5_000_000)
    assert report.outcome == "failed"
    assert report.failure is not None
    assert report.failure.stage == "transfer_data"


@over(SSH, GRIDFTP)
def test_a_full_destination_is_named_and_keeps_no_partial_file(way: Way, small_disk: SmallDisk) -> None:
    full = replace(way.resources[DESTINATION], scratch=str(small_disk.root))
    report = way.run("gather", at_stage={"transfer_results": small_disk.fill}, resources={DESTINATION: full})
    assert_failed(report, stage="transfer_results", resource=DESTINATION, message="o space left on device")
    small_disk.empty()
    assert [file for file in small_disk.root.rglob("*") if not file.is_dir()] == []


@over(SSH, GRIDFTP)
def test_a_flipped_bit_is_detected_by_the_checksum(way: Way) -> None:
    report = way.run(
        "gather", at_stage={"transfer_data": lambda: flip_bit(only_file(way.scratch(SOURCE), "source.dat"))}
    )
    message = f"the input from {SOURCE} was damaged on its way to {COMPUTE}"
    assert_failed(report, stage="compute", resource=COMPUTE, message=message)


@over(SSH)
@pytest.mark.nightly
def test_a_compiler_that_is_missing_is_named(way: Way) -> None:
    way.inject_fault(COMPUTE, "compile", "missing")
    assert_failed(way.run("gather"), stage="init", resource=COMPUTE, message="cc is not installed")


@over(SSH, SLURM)
@pytest.mark.nightly
def test_an_executable_that_is_missing_is_named(way: Way) -> None:
    report = way.run(
        "gather", at_stage={"queue_wait": lambda: only_file(way.scratch(COMPUTE), "aggregate").unlink()}
    )
    assert_failed(report, stage="compute", resource=COMPUTE, message="aggregate")
    assert "not found" in report.reason or "No such file" in report.reason


@over(SLURM, SSH)
@pytest.mark.nightly
def test_a_job_is_killed_at_its_wall_limit(way: Way) -> None:
    report = way.run("gather", at_stage={"queue_wait": lambda: make_job_endless(way)}, wall_seconds=1.0)
    assert_failed(report, stage="compute", resource=COMPUTE, message="exceeded its wall limit of 1 s")


@over(SSH, SLURM)
@pytest.mark.nightly
def test_a_job_that_never_starts_ends_at_the_time_limit_of_the_run(way: Way) -> None:
    if way.cluster is not None:
        way.cluster.close_partitions()
    else:
        way.inject_fault(COMPUTE, "queue", "stuck")
    try:
        report = way.run("gather", seconds_left_at={"queue_wait": 2.0})
    finally:
        if way.cluster is not None:
            way.cluster.open_partitions()
    assert report.outcome == "timed_out", report.reason
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("queue_wait", COMPUTE)


@over(SLURM, SSH)
def test_a_job_that_is_killed_is_named(way: Way) -> None:
    if way.cluster is None:
        way.inject_fault(COMPUTE, "compute", "killed")
        message = "was killed by signal 9"
        report = way.run("gather")
    else:
        message = "cancelled"
        report = way.run(
            "gather",
            at_stage={"queue_wait": lambda: make_job_endless(way), "compute": lambda: cancel_all(way)},
        )
    assert_failed(report, stage="compute", resource=COMPUTE, message=message)


@over(SSH, SLURM)
@pytest.mark.nightly
def test_unreadable_output_is_quoted(way: Way) -> None:
    undos: list[Callable[[], None]] = []

    def replace_sha256sum() -> None:
        undos.append(way.install(COMPUTE, "sha256sum", "echo 'Segmentation fault?'"))

    try:
        report = way.run("gather", at_stage={"queue_wait": replace_sha256sum})
    finally:
        for undo in undos:
            undo()
    message = f"unreadable output of sha256sum at {COMPUTE}: 'Segmentation fault?'"
    assert_failed(report, stage="compute", resource=COMPUTE, message=message)


def security_of(way: Way) -> Security:
    assert way.security is not None
    return way.security


@over(GRIDFTP)
@pytest.mark.nightly
def test_a_proxy_that_is_missing_is_named_before_any_transfer(way: Way, tmp_path: Path) -> None:
    report = way.run("circle", resources=with_proxy(way, tmp_path / "nothing"))
    assert_failed(report, stage="init", resource=SOURCE, message="no valid proxy")


@pytest.mark.nightly  # tests/reporters/test_credentials_proxy.py has the messages
@over(GRIDFTP)
def test_a_proxy_that_has_expired_says_when(way: Way) -> None:
    report = way.run("circle", resources=with_proxy(way, security_of(way).expired_proxy(hours=47)))
    assert_failed(report, stage="init", resource=SOURCE, message="expired 47 h ago")


@pytest.mark.nightly
@over(GRIDFTP)
def test_a_proxy_that_ends_too_soon_for_the_forecast_says_both_times(way: Way) -> None:
    short = with_proxy(way, security_of(way).proxy("short", minutes=5))
    report = way.run("circle", resources=short, expected_seconds={"total.seconds": 540.0})
    assert_failed(report, stage="init", resource=SOURCE, message="the run needs about 9 min")


@pytest.mark.nightly
@over(GRIDFTP)
def test_a_proxy_that_outlasts_the_forecast_suffices(way: Way) -> None:
    short = with_proxy(way, security_of(way).proxy("short", minutes=5))
    report = way.run("circle", resources=short, expected_seconds={"total.seconds": 30.0})
    assert report.outcome == "passed", report.reason


def make_job_endless(way: Way) -> None:
    """Replace the kernel of the current run with a program that sleeps."""
    only_file(way.scratch(COMPUTE), "aggregate").write_text("#!/bin/sh\nexec sleep 600\n")


def cancel_all(way: Way) -> None:
    assert way.cluster is not None
    for job in way.cluster.run("squeue", "-h", "-o", "%i").split():
        way.cluster.run("scancel", job)
