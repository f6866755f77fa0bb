"""Streams: how many tasks should read, and how many write, at once?

Tasks write a file each and read it twice, as MADbench does; of them, only so many readers and so many writers
may do I/O at a time. A pass tries every number of readers with every number of writers, in an order of its
own. As in ``storage_sweep``, a run measures what its limit allows of one pass, and the next run goes on.

``manage.py sweep`` exports the times for ``python -m forecasting sweet-spot``, whose verdict sets the tokens
of ``gridcast-reporter tokens serve``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from probes.base import InvalidParameters, Measurement, NoData, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, external_program, kernels, memory, passes
from probes.common.passes import SweepPosition, SweepState
from probes.grid import Completed, Grid

_BUILD_BYTES = 1_000_000
_BLOCK_BYTES = 4096  # of direct I/O
_NO_DIRECT_IO = 3  # exit status of the kernel
_MARGIN_SECONDS = 2.0
_LONGEST_SECONDS = 86_400.0
_NUMBER = r"(\d+\.\d+)"
_PHASE = re.compile(
    rf"(write|read|reread) seconds {_NUMBER} io {_NUMBER} barrier {_NUMBER} spread {_NUMBER}", re.ASCII
)
_TOTAL = re.compile(rf"total {_NUMBER}", re.ASCII)
_LIMITS = "numbers of tasks that {} at once, separated by commas; empty: 1, the powers of two and all"


@dataclass(frozen=True)
class StreamLimits:
    """How many tasks may read, and how many write, at once."""

    readers: int
    writers: int

    def metric(self, name: str) -> str:
        return f"streams.readers={self.readers},writers={self.writers}.{name}"


@dataclass(frozen=True)
class PhaseSeconds:
    """The seconds of a phase: in all; means over tasks for I/O and at barriers; the spread of their ends."""

    seconds: float
    io_seconds: float
    barrier_seconds: float
    spread_seconds: float


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Times tasks that write and read, with limits on how many do so at once."
    roles = {"target": Role(1, 1, "has the scratch directory")}
    parameters = {
        "tasks": Parameter(16, "processes, each with its file", 2, 1024),
        "readers": Parameter("", _LIMITS.format("read")),
        "writers": Parameter("", _LIMITS.format("write")),
        "file_bytes": Parameter(268_435_456, "size of all data, bytes", 4096, 1e15),
        "bins": Parameter(16, "parts of a file; tasks meet before and after each", 1, 100_000),
        "request_bytes": Parameter(32_768, "size of one request, bytes", 512, 2**30),
        "busy_seconds": Parameter(0.0, "computing before each part, seconds", 0.0, 3600.0),
        "cache": Parameter(
            "direct", "direct, or cached: needs data of twice the memory", choices=("direct", "cached")
        ),
        "passes": passes.PASSES,
        "seed": passes.SEED,
    }
    trial = {"tasks": 2, "file_bytes": 262_144, "bins": 2}
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("streams", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid, self.plan = grid, plan
        self.target = plan.resource("target")
        self.tasks, self.bins = plan.integer("tasks"), plan.integer("bins")
        self.is_direct = plan.text("cache") == "direct"
        bin_bytes = plan.integer("file_bytes") // (self.tasks * self.bins)
        self.bin_bytes = bin_bytes - bin_bytes % _BLOCK_BYTES
        self.request_bytes = min(plan.integer("request_bytes"), self.bin_bytes)
        if not self.bin_bytes or self.request_bytes % 512:
            raise InvalidParameters(
                f"file_bytes: {self.tasks} tasks with {self.bins} parts need at least "
                f"{self.tasks * self.bins * _BLOCK_BYTES} bytes, and request_bytes a multiple of 512"
            )
        readers, writers = (limits(name, plan.text(name), self.tasks) for name in ("readers", "writers"))
        self.settings = [StreamLimits(reading, writing) for reading in readers for writing in writers]
        self.design = passes.design_digest([dict(plan.parameters)])
        self.position: SweepPosition | None = None  # known after init
        self.measured = 0

    def init(self) -> None:
        self.position = self._recalled()
        needed_bytes = self.plan.integer("file_bytes") + _BUILD_BYTES
        checks.check_resources(self.grid, {self.target: checks.Needs(needed_bytes, ["cc"])})
        if not self.is_direct:
            memory.check_twice_the_memory(self.grid, self.target, self.plan.integer("file_bytes"))

    def build_executable(self) -> None:
        libraries = ["-lpthread", "-lm"]
        self.executable = kernels.build_kernel(
            self.grid, self.target, "streams", libraries=libraries, headers=["checked"]
        )

    def streams(self) -> Iterator[Measurement]:
        """Measure the rest of the pass, until the run's limit is near; yield values when they are known."""
        assert self.position is not None  # noqa: S101 - init has set it
        yield from passes.first_metrics("streams", self.position)
        order = passes.order(len(self.settings), self.plan.integer("seed"), self.position)
        most = passes.MOST_VALUES // 6
        longest = 0.0
        for number in order[self.position.done :][:most]:
            if self.measured and self.grid.remaining_seconds() < longest + _MARGIN_SECONDS:
                return
            began = time.monotonic()
            yield from self._measure(self.settings[number])
            self.measured += 1
            longest = max(longest, time.monotonic() - began)

    def cleanup(self) -> list[Measurement]:
        self.grid.clean_up()
        if self.position is None or not self.measured:
            return []
        after = self.position.advanced(self.measured, len(self.settings), self.plan.integer("passes"))
        self.grid.remember(SweepState(self.design, after).to_text())
        remaining = len(self.settings) - self.position.done - self.measured
        return passes.last_metrics("streams", self.measured, remaining)

    def _measure(self, setting: StreamLimits) -> list[Measurement]:
        numbers = [self.tasks, self.bins, self.bin_bytes, self.request_bytes, int(self.is_direct)]
        numbers += [setting.readers, setting.writers]
        files = f"{self.grid.scratch(self.target)}/streams"
        argv = [self.executable, files, *map(str, numbers), str(self.plan.parameters["busy_seconds"])]
        completed = self.grid.shell(self.target).run(argv, timeout_seconds=_LONGEST_SECONDS)
        if completed.returncode:
            raise self._failure(completed, setting)
        total_seconds, phases = parse_streams(completed.stdout, self.target)
        return setting_metrics(setting, total_seconds, phases)

    def _failure(self, completed: Completed, setting: StreamLimits) -> Exception:
        lines = completed.stderr.strip().splitlines() or [f"exit status {completed.returncode}"]
        reason = lines[0].partition("streams: ")[2] or lines[0]
        if completed.returncode == _NO_DIRECT_IO:
            return NoData(f"direct I/O at {self.target} is refused: {reason}")
        doing = f"measure {setting.readers} readers and {setting.writers} writers"
        return external_program.program_failed(
            f"cannot {doing} at {self.target}: {reason}", self.target, completed
        )

    def _recalled(self) -> SweepPosition:
        try:
            state = passes.parse_state(self.grid.recall())
        except ValueError as error:
            self.grid.log(f"what the last run remembered is {error}: a new sweep begins", "warning")
            state = SweepState()
        kept = state.position if state.design == self.design else None
        return kept or SweepPosition(began=int(time.time()))


def limits(name: str, text: str, tasks: int) -> list[int]:
    """Return the numbers in *text*; if it is empty, 1, the powers of two below *tasks*, and *tasks*.

    Raises:
        InvalidParameters: a number is not from 1 to *tasks*, occurs twice, or *tasks* is missing.
    """
    if not text.strip():
        return [*(2**power for power in range(tasks.bit_length()) if 2**power < tasks), tasks]
    parts = [part.strip() for part in text.split(",")]
    numbers = [int(part) if part.isascii() and part.isdigit() and len(part) < 9 else 0 for part in parts]
    if not all(1 <= number <= tasks for number in numbers) or len(set(numbers)) < len(numbers):
        raise InvalidParameters(f"{name}: expected different numbers from 1 to {tasks}, got {text!r}")
    if tasks not in numbers:
        raise InvalidParameters(
            f"{name}: {tasks} is missing, all tasks at once, to which the others are compared"
        )
    return numbers


def parse_streams(text: str, resource: str) -> tuple[float, dict[str, PhaseSeconds]]:
    """Return the total seconds in the kernel's output, and the seconds of each phase by name.

    Raises:
        ProbeFailed: a line is missing or cannot be read.
    """
    first, *lines = text.splitlines() or [""]
    total, matches = _TOTAL.fullmatch(first), [_PHASE.fullmatch(line) for line in lines]
    phases = {match[1]: PhaseSeconds(*map(float, match.groups()[1:])) for match in matches if match}
    if total is None or list(phases) != ["write", "read", "reread"] or len(matches) != len(phases):
        raise ProbeFailed(f"unreadable output of streams at {resource}: {text[-300:]!r}", resource=resource)
    return float(total[1]), phases


def setting_metrics(
    setting: StreamLimits, total_seconds: float, phases: dict[str, PhaseSeconds]
) -> list[Measurement]:
    """Return the metrics of one setting. The spread is the mean over the phases."""
    every = phases.values()
    values = {
        "seconds": total_seconds,
        "io.seconds": sum(phase.io_seconds for phase in every),
        "barrier.seconds": sum(phase.barrier_seconds for phase in every),
        "spread.seconds": sum(phase.spread_seconds for phase in every) / len(phases),
        "write.seconds": phases["write"].seconds,
        "read.seconds": phases["read"].seconds + phases["reread"].seconds,
    }
    return [Measurement(setting.metric(name), value, "seconds") for name, value in values.items()]
