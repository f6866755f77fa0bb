"""Disk: what the scratch file system does, past the page cache, with large and small blocks and with files.

A new file is written from its beginning to its end, read so, then read and written in small blocks at random.
By fio (Jens Axboe, fio.readthedocs.io) where the site has it, else by a kernel of our own, which also makes,
looks at and removes empty files: the metadata rate, what users feel when they unpack or compile something.

Direct I/O leaves out the page cache. Where a file system has none, the log says so: rates are then partly
those of memory, and do not compare with others. Blocks must be multiples of the device's own, of which some
have 4096 bytes: where they are not there are no data.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from probes.base import InvalidParameters, Measurement, NoData, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, kernels, rates
from probes.grid import Grid

FIO_OPERATIONS = {"write": "write", "read": "read", "randread": "read", "randwrite": "write"}  # in its JSON
_NO_DIRECT_IO = 22  # EINVAL, of opening a file for it
_SMALLEST_DIRECT = (
    "for size in 512 1024 2048 4096 8192 16384 32768 65536; do"
    ' dd if=/dev/zero of="$1" bs=$size count=1 oflag=direct 2> /dev/null && echo $size && break;'
    ' done; rm -f "$1"'
)
_BUILD_BYTES = 1_000_000
_GRACE_SECONDS = 120.0  # for the flush after the last block


@dataclass(frozen=True)
class OperationResult:
    """What one operation did in *seconds*."""

    operations: int
    size_bytes: int
    seconds: float


class FioFailed(ValueError):
    """fio says that it could not do it, or says nothing readable. *errno* is 0 where it gives none."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Measures the scratch file system: large and small blocks, read and written, and files."
    roles = {"target": Role(1, 1, "has the scratch directory")}
    parameters = {
        "file_bytes": Parameter(268_435_456, "size of the file, bytes", 4096, 1e13),
        "sequential_block_bytes": Parameter(1_048_576, "block of sequential I/O, bytes", 512, 2**30),
        "random_block_bytes": Parameter(4096, "block of random I/O, bytes", 512, 2**30),
        "files": Parameter(1000, "empty files for the metadata rate", 1, 10_000_000),
        "limit_seconds": Parameter(30, "each operation ends after this with what it has done", 1, 3600),
        "tool": Parameter(
            "auto", "fio, the own kernel, or fio where it is installed", choices=("auto", "fio", "own")
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
        self.direct = True  # until the file system turns out to have none
        if not self.small_bytes <= self.large_bytes <= self.file_bytes:
            raise InvalidParameters("random_block_bytes, sequential_block_bytes and file_bytes must ascend")
        if self.small_bytes % 512 or self.large_bytes % 512:
            raise InvalidParameters("blocks must be multiples of 512 bytes, for direct I/O")

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(self.file_bytes + _BUILD_BYTES, ())})
        if self.tool == "auto":
            self.tool = "fio" if self._runs("fio") else "own"
        self.can_build = self.tool == "own" or self._runs("cc")
        self.grid.check_tools(self.target, ["fio" if self.tool == "fio" else "cc"])
        self._check_blocks()

    def build_executable(self) -> None:
        if self.can_build:
            self.executable = kernels.build_kernel(self.grid, self.target, "disk")
        self.grid.log(f"measured by {'fio' if self.tool == 'fio' else 'the own kernel'}")

    def sequential_write(self) -> list[Measurement]:
        done = self._measure("write", self.large_bytes, self.file_bytes)
        self.written_bytes = done.size_bytes  # less where the time was up
        return rates.bytes_per_second("sequential_write.bytes_per_second", done.size_bytes, done.seconds)

    def sequential_read(self) -> list[Measurement]:
        done = self._measure("read", self.large_bytes, self.written_bytes)
        return rates.bytes_per_second("sequential_read.bytes_per_second", done.size_bytes, done.seconds)

    def random_read(self) -> list[Measurement]:
        done = self._measure("randread", self.small_bytes, self.written_bytes)
        return operations_metric("random_read", done)

    def random_write(self) -> list[Measurement]:
        done = self._measure("randwrite", self.small_bytes, self.written_bytes)
        return operations_metric("random_write", done)

    def metadata(self) -> list[Measurement]:
        if not self.can_build:
            self.grid.log(f"no metadata rate: fio has none, and {self.target} has no compiler", "warning")
            return []
        measured = self._own("metadata", 1, self.files)
        return [
            metric
            for name in ("create", "stat", "unlink")
            for metric in operations_metric(f"metadata.{name}", measured[name])
        ]

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _check_blocks(self) -> None:
        """Raise NoData where the device takes no such blocks; nothing where it takes none of any size."""
        text = self.grid.shell(self.target).check(
            ["sh", "-c", _SMALLEST_DIRECT, "sh", self._file()],
            timeout_seconds=60.0,
            doing="find the smallest block of direct I/O",
        )
        smallest_bytes = int(text) if text.strip().isdecimal() else 1
        for block_bytes in (self.small_bytes, self.large_bytes):
            if block_bytes % smallest_bytes:
                raise NoData(
                    f"direct I/O at {self.target} takes multiples of {smallest_bytes} bytes, "
                    f"no blocks of {block_bytes}"
                )

    def _measure(self, operation: str, block_bytes: int, size_bytes: int) -> OperationResult:
        if self.tool == "own":
            return self._own(operation, block_bytes, size_bytes)[operation]
        try:
            return self._fio(operation, block_bytes, size_bytes)
        except FioFailed as error:
            if error.errno != _NO_DIRECT_IO or not self.direct:
                raise self._failed(f"fio cannot {operation} at {self.target}: {error}") from None
        self._go_through_the_cache()
        return self._measure(operation, block_bytes, size_bytes)

    def _own(self, operation: str, block_bytes: int, size: int) -> dict[str, OperationResult]:
        arguments = [str(number) for number in (block_bytes, size, self.limit_seconds)]
        text = self.grid.shell(self.target).check(
            [self.executable, operation, self._file(), *arguments],
            timeout_seconds=2 * self.limit_seconds + _GRACE_SECONDS,
            doing=f"{operation} in the scratch directory",
        )
        direct, measured = parse_own(text, self.target)
        if self.direct and not direct:
            self._go_through_the_cache()
        return measured

    def _fio(self, operation: str, block_bytes: int, size_bytes: int) -> OperationResult:
        argv = fio_command(
            operation, self._file(), block_bytes, size_bytes, self.limit_seconds, direct=self.direct
        )
        limit_seconds = 2 * self.limit_seconds + _GRACE_SECONDS
        self.done = self.grid.shell(self.target).run(argv, timeout_seconds=limit_seconds)
        return parse_fio(self.done.stdout, operation)

    def _file(self) -> str:
        return f"{self.grid.scratch(self.target)}/disk.dat"

    def _runs(self, program: str) -> bool:
        """Whether *program* is there and answers: a package may be half installed."""
        done = self.grid.shell(self.target).run([program, "--version"], timeout_seconds=60.0)
        if done.returncode not in (0, 127):
            self.grid.log(f"{program} at {self.target} does not run: {done.stderr.strip()[-200:]}", "warning")
        return done.returncode == 0

    def _go_through_the_cache(self) -> None:
        self.direct = False
        self.grid.log(f"no direct I/O at {self.target}: the page cache takes part", "warning")

    def _failed(self, message: str) -> ProbeFailed:
        return ProbeFailed(
            message,
            resource=self.target,
            exit_status=self.done.returncode,
            stderr_tail=self.done.stderr[-4000:],
        )


def operations_metric(name: str, done: OperationResult) -> list[Measurement]:
    """A rate of operations; none where the time was too short for the clock that measured it."""
    if done.seconds <= 0:
        return []
    rate = done.operations / done.seconds
    return [Measurement(f"{name}.operations_per_second", rate, "operations_per_second")]


def fio_command(
    operation: str, path: str, block_bytes: int, size_bytes: int, limit_seconds: int, *, direct: bool
) -> list[str]:
    """The call of fio for one operation, answered in JSON."""
    return [
        "fio",
        "--name=gridcast",
        "--filename=" + path.replace(":", "\\:"),  # a colon would begin another file
        f"--rw={operation}",
        f"--bs={block_bytes}",
        f"--size={size_bytes - size_bytes % block_bytes}",
        f"--runtime={limit_seconds}",
        f"--direct={int(direct)}",
        f"--end_fsync={int(operation.endswith('write'))}",
        "--ioengine=psync",
        "--fallocate=none",
        "--randrepeat=0",
        "--output-format=json",
    ]


def parse_fio(text: str, operation: str) -> OperationResult:
    """What fio did in its only job. Its complaints stand before the JSON.

    Raises:
        FioFailed: an error that it reports, nothing done, or no JSON.
    """
    complaints, brace, rest = text.partition("{")
    try:
        job: dict[str, Any] = json.loads(brace + rest)["jobs"][0]
        done = job[FIO_OPERATIONS[operation]]
        measured = OperationResult(
            int(done["total_ios"]), int(done["io_bytes"]), float(done["runtime"]) / 1000
        )
        errno = int(job["error"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise FioFailed(f"unreadable output: {text[-200:]!r}") from None
    if errno:
        raise FioFailed(
            os.strerror(errno) + (f" ({complaints.strip()})" if complaints.strip() else ""), errno
        )
    if measured.operations == 0:
        raise FioFailed("it did nothing, and does not say why")
    return measured


def parse_own(text: str, resource: str) -> tuple[bool, dict[str, OperationResult]]:
    """Whether the I/O was direct, and each operation's result. Raises ProbeFailed."""
    direct, measured = True, {}
    try:
        for name, *numbers in (line.split() for line in text.splitlines()):
            if name == "direct":
                direct = numbers == ["1"]
            else:
                operations, size, seconds = numbers
                measured[name] = OperationResult(int(operations), int(size), float(seconds))
    except ValueError:
        measured = {}
    if not measured:
        raise ProbeFailed(f"unreadable output of disk at {resource}: {text[-200:]!r}", resource=resource)
    return direct, measured
