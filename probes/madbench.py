"""MADbench: out-of-core matrices written, read and written again, and read, by several processes at once.

The application benchmark for storage, after the I/O mode of MADbench2 (J. Borrill, L. Oliker, J. Shalf, H.
Shan, Investigation of leading HPC I/O performance using a scientific-application derived benchmark, SC'07):
an analysis of the cosmic microwave background with all but its I/O replaced by busy work. As there, a task
has a file of its own, uses POSIX I/O, and of *rmod* (*wmod*) neighbouring tasks one reads (writes) at a time.
Unlike there, the tasks need no MPI: the job waits for all of them after each phase; every value that is read
is verified; and what is written is on the storage device when a phase ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from probes.base import Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, jobs, kernels, rates
from probes.grid import Grid

PHASES = ("S", "W", "C")
VALUE_BYTES = 8

# Arguments: scratch directory, kernel, no_pix, no_bin, tasks, rmod, wmod, busy exponent.
JOB = """\
cd "$1" || exit 1
madbench=$2 no_pix=$3 no_bin=$4 tasks=$5 rmod=$6 wmod=$7 exponent=$8
for phase in S W C; do
  task=0 running=
  while [ "$task" -lt "$tasks" ]; do
    "$madbench" "$phase" "matrices.$task" "$no_pix" "$no_bin" "$task" "$tasks" "$exponent" \\
      "readers.$((task / rmod))" "writers.$((task / wmod))" > "times.$phase.$task" &
    running="$running $!" task=$((task + 1))
  done
  status=0 task=0
  for process in $running; do
    wait "$process" || { status=$?; echo "task $task of phase $phase failed with status $status" >&2; }
    cat "times.$phase.$task" >> times
    task=$((task + 1))
  done
  [ "$status" -eq 0 ] || exit "$status"
done
"""

_SECONDS = r"(\d+\.\d+)"
_TIMES = re.compile(
    rf"phase ([SWC]) task (\d+) read (\d+) bytes in {_SECONDS} write (\d+) bytes in {_SECONDS} "
    rf"wait {_SECONDS} busy {_SECONDS} seconds {_SECONDS}"
)


@dataclass(frozen=True)
class PhaseTimes:
    """What one task says of one phase. It waits for tasks that must not read or write at the same time."""

    phase: str
    task: int
    read_bytes: int
    read_seconds: float
    write_bytes: int
    write_seconds: float
    wait_seconds: float
    busy_seconds: float
    seconds: float

    @property
    def io_seconds(self) -> float:
        """How long reading and writing kept the task from going on."""
        return self.read_seconds + self.write_seconds + self.wait_seconds


class Probe:
    kind = "application"
    version = "1.0"
    summary = "Writes, rewrites and reads matrices that do not fit in memory, and verifies them."
    roles = {"compute": Role(1, 1, "has the matrices in its scratch directory, and the batch job")}
    parameters = {
        "no_pix": Parameter(2048, "rows and columns of a matrix", 1, 1e5),
        "no_bin": Parameter(8, "matrices", 1, 10_000),
        "rmod": Parameter(1, "neighbouring tasks of which one reads at a time", 1, 256),
        "wmod": Parameter(1, "neighbouring tasks of which one writes at a time", 1, 256),
        "busy_exponent": Parameter(1.0, "operations of busy work per matrix: no_pix to twice this", 0.0, 2.0),
        "tasks": Parameter(2, "processes that share every matrix", 1, 256),
        "wall_seconds": jobs.WALL_SECONDS,
    }
    trial = {"no_pix": 64, "no_bin": 2}
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("queue_wait", "queue"),
        Stage("compute", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.compute_resource = plan.resource("compute")
        self.no_pix = plan.integer("no_pix")
        self.no_bin = plan.integer("no_bin")
        self.tasks = min(plan.integer("tasks"), self.no_pix)  # each has one row at least
        self.others = [str(plan.parameters[name]) for name in ("rmod", "wmod", "busy_exponent")]
        self.wall_seconds = jobs.wall_seconds(grid, plan)

    def init(self) -> None:
        needs = checks.Needs(self._matrices_bytes(), ["cc"])
        checks.check_resources(self.grid, {self.compute_resource: needs})

    def build_executable(self) -> None:
        self.executable = kernels.build_kernel(
            self.grid, self.compute_resource, "madbench", libraries=["-lm"], headers=["checked"]
        )

    def queue_wait(self) -> list[Measurement]:
        directory = self.grid.scratch(self.compute_resource)
        sizes = [str(number) for number in (self.no_pix, self.no_bin, self.tasks)]
        argv = ["sh", "-c", JOB, "madbench", directory, self.executable, *sizes, *self.others]
        self.job = self.grid.submit(
            self.compute_resource, argv, cpus=self.tasks, wall_seconds=self.wall_seconds
        )
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        self.job.wait_ended()
        text = jobs.read_job_file(self.grid, self.compute_resource, "times", what="times")
        times = parse_times(text, self.tasks, self._matrices_bytes(), self.compute_resource)
        phases = [[one for one in times if one.phase == phase] for phase in PHASES]
        return [metric for phase in phases for metric in phase_metrics(phase)] + overall_metrics(phases)

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _matrices_bytes(self) -> int:
        return VALUE_BYTES * self.no_pix * self.no_pix * self.no_bin


def parse_times(text: str, tasks: int, matrices_bytes: int, resource: str) -> list[PhaseTimes]:
    """Parse a line for each task of each phase, in order.

    Raises ProbeFailed unless every task reports every phase, and the phases moved all matrices.
    """
    matches = [_TIMES.fullmatch(line) for line in text.splitlines()]
    times = [_times(match) for match in matches if match]
    expected = [(phase, task) for phase in PHASES for task in range(tasks)]
    moved = [sum(one.read_bytes + one.write_bytes for one in times if one.phase == phase) for phase in PHASES]
    if (
        len(times) != len(matches)
        or [(one.phase, one.task) for one in times] != expected
        or moved != [matrices_bytes, 2 * matrices_bytes, matrices_bytes]
    ):
        raise ProbeFailed(f"unreadable output of madbench at {resource}: {text[-300:]!r}", resource=resource)
    return times


def _times(match: re.Match[str]) -> PhaseTimes:
    phase, task, read_bytes, read_seconds, write_bytes, *seconds = match.groups()
    return PhaseTimes(
        phase, int(task), int(read_bytes), float(read_seconds), int(write_bytes), *map(float, seconds)
    )


def phase_metrics(times: Sequence[PhaseTimes]) -> list[Measurement]:
    """Of one phase. Its tasks wait for each other at its end: seconds are the slowest task's."""
    name = f"madbench.{times[0].phase.lower()}"
    moved_bytes = sum(one.read_bytes + one.write_bytes for one in times)
    io_seconds = _slowest(times, lambda one: one.io_seconds)
    return [
        Measurement(f"{name}.seconds", _slowest(times, lambda one: one.seconds), "seconds"),
        Measurement(f"{name}.busy.seconds", _slowest(times, lambda one: one.busy_seconds), "seconds"),
        Measurement(f"{name}.io.seconds", io_seconds, "seconds"),
        Measurement(f"{name}.wait.seconds", _slowest(times, lambda one: one.wait_seconds), "seconds"),
        Measurement(f"{name}.bytes", moved_bytes, "bytes"),
        *rates.bytes_per_second(f"{name}.bytes_per_second", moved_bytes, io_seconds),
    ]


def overall_metrics(phases: Sequence[Sequence[PhaseTimes]]) -> list[Measurement]:
    """Of all phases: everything moved; and what was read and written, without waiting for other tasks."""
    everything = [one for times in phases for one in times]
    read_bytes = sum(one.read_bytes for one in everything)
    write_bytes = sum(one.write_bytes for one in everything)
    io_seconds, read_seconds, write_seconds = (
        sum(_slowest(times, seconds) for times in phases)
        for seconds in (
            lambda one: one.io_seconds,
            lambda one: one.read_seconds,
            lambda one: one.write_seconds,
        )
    )
    return [
        Measurement("madbench.bytes", read_bytes + write_bytes, "bytes"),
        *rates.bytes_per_second("madbench.bytes_per_second", read_bytes + write_bytes, io_seconds),
        *rates.bytes_per_second("madbench.read.bytes_per_second", read_bytes, read_seconds),
        *rates.bytes_per_second("madbench.write.bytes_per_second", write_bytes, write_seconds),
    ]


def _slowest(times: Sequence[PhaseTimes], seconds: Callable[[PhaseTimes], float]) -> float:
    return max(seconds(one) for one in times)
