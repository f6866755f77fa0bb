"""Disk: parsing the output of fio and of the kernel, runs with either, and unsuitable file systems."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware.programs import locate
from probes.base import ProbeFailed
from probes.common.fio import FioFailed, OperationResult, parse_fio
from probes.common.kernels import kernel_source
from probes.disk import fio_command, parse_own
from reporters.report import Report
from tests.probes.runs import install, logged, metrics, run_locally, units
from tests.reporters.needs import needs
from tests.reporters.small_file_system import small_file_system

DATA = Path(__file__).parent / "data" / "fio"
SMALL = {"file_bytes": 262_144, "sequential_block_bytes": 65_536, "files": 10, "limit_seconds": 2}
RATES = [
    "scratch.full",
    "sequential_write.bytes_per_second",
    "sequential_read.bytes_per_second",
    "random_read.operations_per_second",
    "random_write.operations_per_second",
    "metadata.create.operations_per_second",
    "metadata.stat.operations_per_second",
    "metadata.unlink.operations_per_second",
]
PRINTED = "create 1000 0 1.139940870\nstat 1000 0 0.001498908\nunlink 1000 0 0.010911171\n"
FIO_WRITE = (DATA / "write.json").read_text()


def run(directory: Path, tool: str, *, resource: dict[str, Any] | None = None, **parameters: int) -> Report:
    return run_locally("disk", directory, {**SMALL, "tool": tool, **parameters}, resource=resource)


def files(directory: Path) -> list[Path]:
    return [file for file in (directory / "at-target" / "scratch").rglob("*") if file.is_file()]


def test_the_result_of_fio_is_parsed() -> None:
    assert parse_fio(FIO_WRITE, "write") == OperationResult(32, 33_554_432, 0.034)
    randread = parse_fio((DATA / "randread.json").read_text(), "randread")
    assert (randread.operations, randread.size_bytes) == (8192, 33_554_432)


@pytest.mark.parametrize(
    ("file", "errno", "message"),
    [
        ("full.json", 28, "No space left on device"),
        ("no_direct.json", 22, "Invalid argument (fio: pid="),
    ],
)
def test_an_error_of_fio_is_parsed_with_its_number(file: str, errno: int, message: str) -> None:
    with pytest.raises(FioFailed) as raised:
        parse_fio((DATA / file).read_text(), "write")
    assert raised.value.errno == errno
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unreadable output"),
        ("fio: unknown option", "unreadable output"),
        (FIO_WRITE[:3000], "unreadable output"),
        ('{"jobs": []}', "unreadable output"),
        ('{"jobs": {}}', "unreadable output"),
        ("{}", "unreadable output"),
        (FIO_WRITE.replace('"total_ios" : 32', '"total_ios" : 0'), "no operation was performed"),
    ],
)
def test_unusable_output_of_fio_is_a_failure(text: str, message: str) -> None:
    with pytest.raises(FioFailed, match=message):
        parse_fio(text, "write")


def test_the_command_of_fio_has_whole_blocks_and_escaped_colons() -> None:
    command = fio_command("randwrite", "/scratch/a:b/disk.dat", 4096, 10_000, 30, is_direct=True)
    for argument in ("--filename=/scratch/a\\:b/disk.dat", "--size=8192", "--end_fsync=1", "--direct=1"):
        assert argument in command


def test_the_result_of_the_kernel_is_parsed() -> None:
    is_direct, results = parse_own(PRINTED, "iu")
    assert is_direct
    assert results["unlink"] == OperationResult(1000, 0, 0.010911171)
    assert parse_own("direct 0\nwrite 10 40960 0.000026940\n", "iu") == (
        False,
        {"write": OperationResult(10, 40_960, 0.000026940)},
    )


@pytest.mark.parametrize("text", ["", "direct 1\n", "write ten 40960 0.1", "write 10 40960"])
def test_unusable_output_of_the_kernel_is_a_failure(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of disk at iu"):
        parse_own(text, "iu")


@pytest.mark.parametrize("tool", ["own", "auto"])
def test_a_run_measures_every_rate_and_leaves_no_file(tmp_path: Path, tool: str) -> None:
    if tool != "own":
        needs("fio")
    report = run(tmp_path, tool)
    assert report.outcome == "passed", report.reason
    assert list(metrics(report)) == RATES
    assert all(rate > 0 for rate in metrics(report).values())
    assert units(report)["random_read.operations_per_second"] == "operations_per_second"
    assert f"measured by {'the own kernel' if tool == 'own' else 'fio'}" in logged(report, "info")
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "warns"), [("exit 127", False), ("echo 'cannot load libaio.so.1' >&2; exit 1", True)]
)
def test_the_kernel_measures_where_fio_does_not_run(tmp_path: Path, script: str, warns: bool) -> None:
    install(tmp_path, "fio", script)
    report = run(tmp_path, "auto")
    assert report.outcome == "passed", report.reason
    assert list(metrics(report)) == RATES
    assert "measured by the own kernel" in logged(report, "info")
    assert any("libaio" in line for line in logged(report, "warning")) == warns


def test_a_run_that_requires_fio_fails_where_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "at-target" / "bin").mkdir(parents=True)
    for program in ("sh", "true", "mktemp", "rmdir", "df", "id", "ls"):
        (tmp_path / "at-target" / "bin" / program).symlink_to(f"/bin/{program}")
    shell = {"kind": "local", "path": str(tmp_path / "at-target" / "bin")}
    report = run(tmp_path, "fio", resource={"shell": shell})
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "init")
    assert "fio is not installed at at-target" in report.reason


def test_without_a_compiler_fio_measures_all_but_the_metadata_rate(tmp_path: Path) -> None:
    needs("fio")
    install(tmp_path, "cc", "exit 127")
    report = run(tmp_path, "auto")
    assert report.outcome == "passed", report.reason
    assert list(metrics(report)) == RATES[:5]
    assert any("no metadata rate" in line for line in logged(report, "warning"))


def test_a_file_system_without_direct_io_is_measured_through_its_cache(tmp_path: Path) -> None:
    needs("fio")
    refusal = f'case "$*" in *--direct=1*) cat {DATA / "no_direct.json"}; exit 1;; esac'
    install(tmp_path, "fio", f'{refusal}\nPATH=/usr/bin:/bin exec fio "$@"')
    report = run(tmp_path, "fio")
    assert report.outcome == "passed", report.reason
    assert list(metrics(report)) == RATES
    assert logged(report, "warning") == ["no direct I/O at at-target: rates include the page cache"]


def test_an_error_of_fio_fails_the_stage_with_its_message(tmp_path: Path) -> None:
    refusal = f'case "$*" in *--rw=*) cat {DATA / "full.json"}; echo "no space" >&2; exit 1;; esac'
    install(tmp_path, "fio", refusal)
    report = run(tmp_path, "fio")
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "sequential_write")
    assert "fio cannot write at at-target: No space left on device" in report.reason
    assert (report.failure.exit_status, report.failure.stderr_tail) == (1, "no space\n")


@pytest.fixture
def small_scratch(tmp_path: Path) -> Iterator[Path]:
    """A scratch file system of 3 MB that is filled while the kernel is compiled."""
    scratch = tmp_path / "at-target" / "scratch"
    scratch.mkdir(parents=True)
    fill = f"dd if=/dev/zero of={scratch}/theirs bs=1024 2> /dev/null"
    install(tmp_path, "cc", f'/usr/bin/cc "$@" && case "$*" in *disk.c*) {fill};; esac; exit 0')
    with small_file_system(scratch, 3, mode="1777"):
        yield scratch


@pytest.mark.parametrize("tool", ["own", "fio"])
def test_a_full_disk_is_reported(tmp_path: Path, small_scratch: Path, tool: str) -> None:
    needs("fio")
    report = run(tmp_path, tool)
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "sequential_write")
    assert "No space left on device" in report.reason
    assert [file.name for file in small_scratch.rglob("*") if file.is_file()] == ["theirs"]


def test_a_disk_that_is_too_small_fails_in_init(tmp_path: Path) -> None:
    report = run_locally("disk", tmp_path, {"file_bytes": 10**13, "tool": "own"})
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "init")
    assert "needs 10.0 TB" in report.reason


@pytest.mark.parametrize(
    "parameters",
    [{"random_block_bytes": 1000}, {"sequential_block_bytes": 512}, {"file_bytes": 8192}],
)
def test_block_sizes_unsuited_to_direct_io_are_refused(tmp_path: Path, parameters: dict[str, int]) -> None:
    report = run_locally("disk", tmp_path, parameters)
    assert report.outcome == "broken"
    assert report.reason.startswith("invalid parameters: ")


@pytest.fixture
def large_sectors(tmp_path: Path) -> Iterator[None]:
    """A scratch file system on a device with sectors of 4096 bytes."""
    needs("mkfs.ext4", "losetup")
    scratch, image = tmp_path / "at-target" / "scratch", tmp_path / "image"
    scratch.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(32_000_000)
    losetup, mkfs = locate("losetup"), locate("mkfs.ext4")
    attach = [losetup, "--find", "--show", "--sector-size", "4096", str(image)]
    attached = subprocess.run(attach, capture_output=True, text=True, check=False)
    if attached.returncode != 0:
        pytest.skip("a loop device with sectors of 4096 bytes needs root and a kernel that allows it")
    device = attached.stdout.strip()
    try:
        subprocess.run([mkfs, "-q", "-O", "^has_journal", device], check=True)
        subprocess.run(["mount", device, str(scratch)], check=True)
        scratch.chmod(0o1777)
        yield
        subprocess.run(["umount", str(scratch)], check=True)
    finally:
        subprocess.run([losetup, "--detach", device], check=True)


@pytest.mark.usefixtures("large_sectors")
def test_blocks_smaller_than_those_of_the_device_are_no_data(
    tmp_path: Path,
) -> None:
    report = run(tmp_path, "own", random_block_bytes=512)
    assert report.outcome == "no_data"
    assert report.reason.endswith("direct I/O at at-target needs blocks of multiples of 4096 bytes, got 512")
    report = run(tmp_path, "own")
    assert report.outcome == "passed", report.reason
    assert logged(report, "warning") == []


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [('case "$*" in *bs=512*|*bs=1024*) exit 1;; esac', "no_data"), ("exit 1", "passed")],
)
def test_the_smallest_block_of_direct_io_is_determined_with_dd(
    tmp_path: Path, refusal: str, outcome: str
) -> None:
    install(tmp_path, "dd", f'{refusal}; exec /bin/dd "$@"')
    report = run(tmp_path, "own", sequential_block_bytes=66_560)  # 65 times 1024
    assert report.outcome == outcome, report.reason


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("disk")
    (directory / "disk.c").write_text(kernel_source("disk"))
    strict = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, "-o", "disk", "disk.c"], cwd=directory, check=True)
    return directory / "disk"


def run_kernel(kernel: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(kernel), *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_the_kernel_writes_and_reads_all_blocks(kernel: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "x")
    for operation, blocks in (("write", 4), ("read", 4), ("randread", 4), ("randwrite", 4)):
        completed = run_kernel(kernel, operation, file, "4096", "16384", "60")
        assert completed.returncode == 0, completed.stderr
        _, results = parse_own(completed.stdout, "here")
        assert (results[operation].operations, results[operation].size_bytes) == (blocks, 16_384)
    assert Path(file).stat().st_size == 16_384


def test_the_kernel_stops_at_its_time_limit(kernel: Path, tmp_path: Path) -> None:
    completed = run_kernel(kernel, "write", str(tmp_path / "x"), "4096", "4096000000", "0")
    assert parse_own(completed.stdout, "here")[1]["write"].operations == 1
    completed = run_kernel(kernel, "metadata", str(tmp_path / "m"), "1", "1000000", "0")
    _, results = parse_own(completed.stdout, "here")
    assert results["create"].operations == results["unlink"].operations < 1_000_000
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["write", "/dev/full", "4096", "8192", "5"], "cannot write /dev/full: No space left on device"),
        (["write", "/no/such/place", "4096", "8192", "5"], "cannot open /no/such/place: No such file"),
        (["read", "/proc/self/stat", "4096", "8192", "5"], "cannot read /proc/self/stat: Input/output error"),
        (["metadata", "/no/such/place", "1", "5", "5"], "cannot create /no/such/place.0: No such file"),
    ],
)
def test_the_kernel_reports_errors(kernel: Path, arguments: list[str], message: str) -> None:
    completed = run_kernel(kernel, *arguments)
    assert completed.returncode == 1
    assert message in completed.stderr


@pytest.mark.parametrize("operation", ["write", "metadata"])
def test_the_kernel_fails_if_it_cannot_write_its_output(kernel: Path, tmp_path: Path, operation: str) -> None:
    argv = [str(kernel), operation, str(tmp_path / "x"), "512", "512", "5"]
    with Path("/dev/full").open("w") as full:
        completed = subprocess.run(
            argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert (completed.returncode, completed.stderr) == (
        1,
        "disk: cannot write the output: No space left on device\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [["write", "x", "100", "1000", "1"], ["write", "x", "0", "0", "1"], ["erase", "x", "512", "512", "1"]],
)
def test_the_kernel_refuses_invalid_arguments(kernel: Path, arguments: list[str]) -> None:
    assert run_kernel(kernel, *arguments).returncode == 2
