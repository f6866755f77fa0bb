"""The tools of a storage sweep, which prepare files and measure a combination: fio, or gridcast's kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod

from probes.base import NoData, Parameter, ProbeFailed
from probes.common import external_program, kernels
from probes.common.fio import NO_DIRECT_IO, FioFailed, OperationResult, escaped, parse_fio
from probes.common.storage_design import Combination
from probes.grid import Completed, Grid

TOOL = Parameter(
    "auto", "fio, the own kernel, or auto: fio if it is installed", choices=("auto", "fio", "own")
)
ENGINE = Parameter(
    "auto",
    "how fio does I/O; auto: io_uring, or libaio where the kernel refuses it",
    choices=("auto", "io_uring", "libaio", "psync"),
)
_ASYNCHRONOUS = ("io_uring", "libaio")
_PREPARE_BYTES_PER_SECOND = 1e6  # slower devices run into the run's limit
_GRACE_SECONDS = 120.0  # the flush after the last request may take longer than the measurement
_KERNEL_NO_DIRECT_IO = 3  # exit status
_FIO_PATTERNS = {"sequential": "", "random": "rand", "random-seek": "rand"}


class SweepTool(ABC):
    """Prepares files and measures combinations at *target*; *parts* are the bytes of a task's part."""

    name = ""

    def __init__(self, grid: Grid, target: str) -> None:
        self.grid, self.target = grid, target

    @abstractmethod
    def build(self) -> None:
        """Build what the tool needs at the target."""

    @abstractmethod
    def prepare(self, files: str, count: int, size_bytes: int, *, is_direct: bool) -> None:
        """Write the files ``<files>.0`` to ``<files>.<count - 1>``, and flush them to the device."""

    @abstractmethod
    def measure(
        self, cell: Combination, files: str, part_bytes: int, seconds: float, seed: int
    ) -> OperationResult:
        """Measure *cell* on the files ``<files>.<number>``, of which a task uses *part_bytes*.

        Raises:
            NoData: the file system refuses direct I/O, or direct I/O with requests of this size.
            ProbeFailed: the tool failed; the message has its error.
        """

    def run(self, argv: list[str], seconds: float) -> Completed:
        return self.grid.shell(self.target).run(argv, timeout_seconds=2 * seconds + _GRACE_SECONDS)

    def no_direct_io(self, doing: str) -> NoData:
        return NoData(f"direct I/O at {self.target} is refused: cannot {doing} (Invalid argument)")


class KernelTool(SweepTool):
    name = "the own kernel"

    def build(self) -> None:
        self._executable = kernels.build_kernel(
            self.grid, self.target, "sweep", libraries=["-lpthread", "-lm"], headers=["checked"]
        )

    def prepare(self, files: str, count: int, size_bytes: int, *, is_direct: bool) -> None:
        argv = [self._executable, "prepare", files, str(count), str(size_bytes), str(int(is_direct))]
        self._run(argv, count * size_bytes / _PREPARE_BYTES_PER_SECOND, "write the files")

    def measure(
        self, cell: Combination, files: str, part_bytes: int, seconds: float, seed: int
    ) -> OperationResult:
        numbers = [cell.request_bytes, cell.queue_depth, int(cell.is_direct), cell.tasks, part_bytes]
        argv = [self._executable, "measure", cell.direction, cell.pattern, *map(str, numbers)]
        argv += [str(int(cell.file == "shared")), files, f"{seconds:g}", str(seed)]
        text = self._run(argv, seconds, f"measure {described(cell)}")
        try:
            operations, size, took = text.split()
            return OperationResult(int(operations), int(size), float(took))
        except ValueError:
            raise ProbeFailed(
                f"unreadable output of sweep at {self.target}: {text[-200:]!r}", resource=self.target
            ) from None

    def _run(self, argv: list[str], seconds: float, doing: str) -> str:
        completed = self.run(argv, seconds)
        if completed.returncode == 0:
            return completed.stdout
        if completed.returncode == _KERNEL_NO_DIRECT_IO:
            raise self.no_direct_io(doing)
        lines = completed.stderr.strip().splitlines() or [f"exit status {completed.returncode}"]
        reason = lines[0].partition("sweep: ")[2] or lines[0]
        message = f"cannot {doing} at {self.target}: {reason}"
        raise external_program.program_failed(message, self.target, completed)


class FioTool(SweepTool):
    name = "fio"

    def __init__(self, grid: Grid, target: str, engine: str) -> None:
        super().__init__(grid, target)
        self._engine = engine

    def build(self) -> None:
        """Build nothing: fio is installed."""

    def choose_engine(self, path: str, *, is_direct: bool) -> None:
        """Choose the first engine that can read *path*.

        Raises:
            ProbeFailed: none of them can; the message has the error of the last.
        """
        engines = _ASYNCHRONOUS if self._engine == "auto" else (self._engine,)
        for engine in engines:
            argv = self._command(path, "read", 4096, 4096, is_direct=is_direct)
            try:
                self._result(
                    [*argv, f"--ioengine={engine}"], 0.0, "read", f"use {engine}", is_direct=is_direct
                )
            except ProbeFailed as error:
                if engine == engines[-1]:
                    raise
                self.grid.log(str(error), "warning")
            else:
                self._engine = engine
                self.name = f"fio with {engine}"
                return

    def prepare(self, files: str, count: int, size_bytes: int, *, is_direct: bool) -> None:
        block_bytes = next(size for size in (1 << 20, 1 << 16, 4096) if size_bytes % size == 0)
        argv = self._command("", "write", block_bytes, count * size_bytes, is_direct=is_direct)
        argv += [*_files(files, "$filenum"), f"--nrfiles={count}", "--file_service_type=sequential"]
        argv += ["--ioengine=psync", "--end_fsync=1"]
        seconds = count * size_bytes / _PREPARE_BYTES_PER_SECOND
        self._result(argv, seconds, "write", "write the files", is_direct=is_direct)

    def measure(
        self, cell: Combination, files: str, part_bytes: int, seconds: float, seed: int
    ) -> OperationResult:
        size_bytes = part_bytes - part_bytes % cell.request_bytes
        argv = self._command(
            "", self._pattern(cell), cell.request_bytes, size_bytes, is_direct=cell.is_direct
        )
        argv += [
            *_files(files, "0" if cell.file == "shared" else "$jobnum"),
            f"--ioengine={self._engine}",
            f"--iodepth={cell.queue_depth}",
            f"--numjobs={cell.tasks}",
            *([f"--offset_increment={part_bytes}"] if cell.file == "shared" else []),
            "--time_based",
            f"--runtime={round(seconds * 1000)}ms",
            f"--end_fsync={int(cell.direction == 'write')}",
            "--norandommap",
            f"--randseed={seed + 1}",
        ]
        doing = f"measure {described(cell)}"
        return self._result(argv, seconds, cell.direction, doing, is_direct=cell.is_direct)

    def _pattern(self, cell: Combination) -> str:
        sequence = ":8" if cell.pattern == "random-seek" else ""
        return f"{_FIO_PATTERNS[cell.pattern]}{cell.direction}{sequence}"

    def _command(
        self, path: str, pattern: str, block_bytes: int, size_bytes: int, *, is_direct: bool
    ) -> list[str]:
        return [
            "fio",
            "--name=gridcast",
            *([f"--filename={escaped(path)}"] if path else []),
            f"--rw={pattern}",
            f"--bs={block_bytes}",
            f"--size={size_bytes}",
            f"--direct={int(is_direct)}",
            "--fallocate=none",
            "--group_reporting",
            "--thread",
            "--disk_util=0",
            "--clocksource=clock_gettime",  # the processor's would be calibrated first, for .3 s
            "--output-format=json",
        ]

    def _result(
        self, argv: list[str], seconds: float, operation: str, doing: str, *, is_direct: bool
    ) -> OperationResult:
        completed = self.run(argv, seconds)
        try:
            return parse_fio(completed.stdout, operation)
        except FioFailed as error:
            if error.errno == NO_DIRECT_IO and is_direct:
                raise self.no_direct_io(doing) from None
            reason = (
                str(error)
                if error.errno or not completed.stderr
                else completed.stderr.strip().splitlines()[0]
            )
            message = f"fio cannot {doing} at {self.target}: {reason}"
            raise external_program.program_failed(message, self.target, completed) from None


def _files(files: str, number: str) -> list[str]:
    directory, _, name = files.rpartition("/")
    return [f"--directory={escaped(directory)}", f"--filename_format={name}.{number}"]


def described(cell: Combination) -> str:
    """Return the combination for messages: "4096-byte random reads, depth 16, 4 tasks, direct, own files"."""
    privileged = "".join(f", {name} {level}" for name, level in cell.privileged.items())
    return (
        f"{cell.pattern} {cell.direction}s of {cell.request_bytes} bytes, depth {cell.queue_depth}, "
        f"{cell.tasks} tasks, {cell.cache}, {cell.file} file{privileged}"
    )
