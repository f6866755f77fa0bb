"""Disk: measure sequential, random and metadata rates of the scratch file system, with direct I/O.

A new file is written and read sequentially in large blocks, then read and written at random in small blocks.
fio (Jens Axboe, fio.readthedocs.io) reads and writes if it is installed at the site, otherwise gridcast's own
kernel. The kernel also measures metadata rates: how fast empty files are created, examined and removed.

Direct I/O bypasses the page cache. On a file system without direct I/O, the rates are partly rates of memory
and not comparable; a warning in the log says so. Blocks must be multiples of the device's block size, which
is 4096 bytes on some devices; otherwise the outcome is ``no_data``.
"""

from __future__ import annotations

from probes.base import InvalidParameters, Measurement, NoData, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, external_program, kernels, rates
from probes.common.fio import NO_DIRECT_IO, FioFailed, OperationResult, escaped, parse_fio
from probes.common.fullness import scratch_fullness
from probes.grid import Grid

_SMALLEST_DIRECT = (
    "for size in 512 1024 2048 4096 8192 16384 32768 65536; do"
    ' dd if=/dev/zero of="$1" bs=$size count=1 oflag=direct 2> /dev/null && echo $size && break;'
    ' done; rm -f "$1"'
)
_BUILD_BYTES = 1_000_000
_FLUSH_SECONDS = 120.0  # the flush after the last block may take longer than the limit


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Measures the scratch file system: sequential and random I/O, and metadata operations."
    roles = {"target": Role(1, 1, "has the scratch directory")}
    parameters = {
        "file_bytes": Parameter(268_435_456, "size of the file, bytes", 4096, 1e13),
        "sequential_block_bytes": Parameter(1_048_576, "block of sequential I/O, bytes", 512, 2**30),
        "random_block_bytes": Parameter(4096, "block of random I/O, bytes", 512, 2**30),
        "files": Parameter(1000, "empty files for the metadata rate", 1, 10_000_000),
        "limit_seconds": Parameter(30, "time limit of each operation, seconds", 1, 3600),
        "tool": Parameter(
            "auto",
            "fio, the own kernel, or auto: fio if it is installed",
            choices=("auto", "fio", "own"),
        ),
    }
    trial = {
        "file_bytes": 1_048_576,
        "sequential_block_bytes": 65_536,
        "files": 20,
        "limit_seconds": 1,
        "tool": "own",
    }
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("sequential_write", "compute"),
        Stage("sequential_read", "compute"),
        Stage("random_read", "compute"),
        Stage("random_write", "compute"),
        Stage("metadata", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.file_bytes = plan.integer("file_bytes")
        self.large_bytes = plan.integer("sequential_block_bytes")
        self.small_bytes = plan.integer("random_block_bytes")
        self.files = plan.integer("files")
        self.limit_seconds = plan.integer("limit_seconds")
        self.tool = plan.text("tool")
        self.is_direct = True  # until the file system refuses direct I/O
        if not self.small_bytes <= self.large_bytes <= self.file_bytes:
            raise InvalidParameters("random_block_bytes, sequential_block_bytes and file_bytes must ascend")
        if self.small_bytes % 512 or self.large_bytes % 512:
            raise InvalidParameters("blocks must be multiples of 512 bytes, for direct I/O")

    def init(self) -> list[Measurement]:
        checks.check_resources(self.grid, {self.target: checks.Needs(self.file_bytes + _BUILD_BYTES, ())})
        if self.tool == "auto":
            self.tool = "fio" if self._is_installed("fio") else "own"
        self.has_compiler = self.tool == "own" or self._is_installed("cc")
        self.grid.check_tools(self.target, ["fio" if self.tool == "fio" else "cc"])
        self._check_blocks()
        return scratch_fullness(self.grid, self.target)

    def build_executable(self) -> None:
        if self.has_compiler:
            self.executable = kernels.build_kernel(self.grid, self.target, "disk")
        self.grid.log(f"measured by {'fio' if self.tool == 'fio' else 'the own kernel'}")

    def sequential_write(self) -> list[Measurement]:
        result = self._measure("write", self.large_bytes, self.file_bytes)
        self.written_bytes = result.size_bytes  # less than file_bytes if the time limit was reached
        return rates.bytes_per_second("sequential_write.bytes_per_second", result.size_bytes, result.seconds)

    def sequential_read(self) -> list[Measurement]:
        result = self._measure("read", self.large_bytes, self.written_bytes)
        return rates.bytes_per_second("sequential_read.bytes_per_second", result.size_bytes, result.seconds)

    def random_read(self) -> list[Measurement]:
        result = self._measure("randread", self.small_bytes, self.written_bytes)
        return operations_per_second("random_read", result)

    def random_write(self) -> list[Measurement]:
        result = self._measure("randwrite", self.small_bytes, self.written_bytes)
        return operations_per_second("random_write", result)

    def metadata(self) -> list[Measurement]:
        if not self.has_compiler:
            self.grid.log(f"no metadata rate: fio has none, and {self.target} has no compiler", "warning")
            return []
        results = self._own("metadata", 1, self.files)
        return [
            metric
            for name in ("create", "stat", "unlink")
            for metric in operations_per_second(f"metadata.{name}", results[name])
        ]

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _check_blocks(self) -> None:
        """Raise NoData if the device accepts direct I/O, but not with the block sizes of the run."""
        text = self.grid.shell(self.target).check(
            ["sh", "-c", _SMALLEST_DIRECT, "sh", self._file()],
            timeout_seconds=60.0,
            doing="find the smallest block of direct I/O",
        )
        smallest_bytes = int(text) if text.strip().isdecimal() else 1
        for block_bytes in (self.small_bytes, self.large_bytes):
            if block_bytes % smallest_bytes:
                raise NoData(
                    f"direct I/O at {self.target} needs blocks of multiples of {smallest_bytes} bytes, "
                    f"got {block_bytes}"
                )

    def _measure(self, operation: str, block_bytes: int, size_bytes: int) -> OperationResult:
        if self.tool == "own":
            return self._own(operation, block_bytes, size_bytes)[operation]
        try:
            return self._fio(operation, block_bytes, size_bytes)
        except FioFailed as error:
            if error.errno != NO_DIRECT_IO or not self.is_direct:
                message = f"fio cannot {operation} at {self.target}: {error}"
                raise external_program.program_failed(message, self.target, self.completed) from None
        self._use_page_cache()
        return self._measure(operation, block_bytes, size_bytes)

    def _own(self, operation: str, block_bytes: int, size: int) -> dict[str, OperationResult]:
        arguments = [str(number) for number in (block_bytes, size, self.limit_seconds)]
        text = self.grid.shell(self.target).check(
            [self.executable, operation, self._file(), *arguments],
            timeout_seconds=2 * self.limit_seconds + _FLUSH_SECONDS,
            doing=f"{operation} in the scratch directory",
        )
        is_direct, results = parse_own(text, self.target)
        if self.is_direct and not is_direct:
            self._use_page_cache()
        return results

    def _fio(self, operation: str, block_bytes: int, size_bytes: int) -> OperationResult:
        argv = fio_command(
            operation, self._file(), block_bytes, size_bytes, self.limit_seconds, is_direct=self.is_direct
        )
        timeout_seconds = 2 * self.limit_seconds + _FLUSH_SECONDS
        self.completed = self.grid.shell(self.target).run(argv, timeout_seconds=timeout_seconds)
        return parse_fio(self.completed.stdout, operation)

    def _file(self) -> str:
        return f"{self.grid.scratch(self.target)}/disk.dat"

    def _is_installed(self, program: str) -> bool:
        """Return whether *program* can be executed; log a warning if the program exists but does not run."""
        completed = self.grid.shell(self.target).run([program, "--version"], timeout_seconds=60.0)
        if completed.returncode not in (0, 127):
            self.grid.log(
                f"{program} at {self.target} does not run: {completed.stderr.strip()[-200:]}", "warning"
            )
        return completed.returncode == 0

    def _use_page_cache(self) -> None:
        self.is_direct = False
        self.grid.log(f"no direct I/O at {self.target}: rates include the page cache", "warning")


def operations_per_second(name: str, result: OperationResult) -> list[Measurement]:
    """Return a list with the rate; empty if the clock was too coarse to measure the rate.

    The metric is called ``<name>.operations_per_second``.
    """
    if result.seconds <= 0:
        return []
    rate = result.operations / result.seconds
    return [Measurement(f"{name}.operations_per_second", rate, "operations_per_second")]


def fio_command(
    operation: str, path: str, block_bytes: int, size_bytes: int, limit_seconds: int, *, is_direct: bool
) -> list[str]:
    """Return the command line of fio, with JSON output, for an *operation* such as "randread"."""
    return [
        "fio",
        "--name=gridcast",
        f"--filename={escaped(path)}",
        f"--rw={operation}",
        f"--bs={block_bytes}",
        f"--size={size_bytes - size_bytes % block_bytes}",
        f"--runtime={limit_seconds}",
        f"--direct={int(is_direct)}",
        f"--end_fsync={int(operation.endswith('write'))}",
        "--ioengine=psync",
        "--fallocate=none",
        "--randrepeat=0",
        "--output-format=json",
    ]


def parse_own(text: str, resource: str) -> tuple[bool, dict[str, OperationResult]]:
    """Parse the output of gridcast's kernel: return whether the I/O was direct, and results by operation.

    Raises:
        ProbeFailed: a line cannot be parsed, or no operation has a result.
    """
    is_direct, results = True, {}
    try:
        for name, *numbers in (line.split() for line in text.splitlines()):
            if name == "direct":
                is_direct = numbers == ["1"]
            else:
                operations, size, seconds = numbers
                results[name] = OperationResult(int(operations), int(size), float(seconds))
    except ValueError:
        results = {}
    if not results:
        raise ProbeFailed(f"unreadable output of disk at {resource}: {text[-200:]!r}", resource=resource)
    return is_direct, results
