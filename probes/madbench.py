"""MADbench: several processes write, rewrite and read out-of-core matrices.

An application benchmark for storage, after the I/O mode of MADbench2 (J. Borrill, L. Oliker, J. Shalf, H.
Shan, Investigation of leading HPC I/O performance using a scientific-application derived benchmark, SC'07):
an analysis of the cosmic microwave background in which busy work replaces all computation. As in the
original, every task has its own file and uses POSIX I/O; in each group of *rmod* neighbouring tasks only one
task reads at a time, in each group of *wmod* tasks only one task writes. Unlike the original, the job
synchronises the tasks after each phase, without MPI. Every value that is read is verified, and a phase ends
when its data are on the storage device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    """The times of one task in one phase. *wait_seconds* is the time spent waiting for other tasks' locks."""

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
        """The seconds that the task spent on I/O, including waits for locks."""
        return self.read_seconds + self.write_seconds + self.wait_seconds


class Probe:
    kind = "application"
    version = "1.0"
    summary = "Writes, rewrites and reads matrices larger than memory, and verifies them."
    roles = {"compute": Role(1, 1, "runs the batch job and has the matrices in its scratch directory")}
    parameters = {
        "no_pix": Parameter(2048, "rows and columns of a matrix", 1, 1e5),
        "no_bin": Parameter(8, "number of matrices", 1, 10_000),
        "rmod": Parameter(1, "number of neighbouring tasks of which one at a time reads", 1, 256),
        "wmod": Parameter(1, "number of neighbouring tasks of which one at a time writes", 1, 256),
        "busy_exponent": Parameter(
            1.0, "busy work per matrix: no_pix ** (2 busy_exponent) operations", 0.0, 2.0
        ),
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
        self.tasks = min(plan.integer("tasks"), self.no_pix)  # each task has at least one row
        self.other_arguments = [str(plan.parameters[name]) for name in ("rmod", "wmod", "busy_exponent")]
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
        argv = ["sh", "-c", JOB, "madbench", directory, self.executable, *sizes, *self.other_arguments]
        self.job = self.grid.submit(
            self.compute_resource, argv, cpus=self.tasks, wall_seconds=self.wall_seconds
        )
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        self.job.wait_ended()
        text = jobs.read_job_file(self.grid, self.compute_resource, "times", what="times")
        times = parse_times(text, self.tasks, self._matrices_bytes(), self.compute_resource)
        phases = [[task for task in times if task.phase == phase] for phase in PHASES]
        return [metric for phase in phases for metric in phase_metrics(phase)] + overall_metrics(phases)

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _matrices_bytes(self) -> int:
        return VALUE_BYTES * self.no_pix * self.no_pix * self.no_bin


def parse_times(text: str, tasks: int, matrices_bytes: int, resource: str) -> list[PhaseTimes]:
    """Parse the output of the job, one line per task and phase; return the lines in the same order.

    *matrices_bytes* is the size of all matrices of all tasks.

    Raises:
        ProbeFailed: a task or phase is missing, or a phase did not read or write all matrices.
    """
    matches = [_TIMES.fullmatch(line) for line in text.splitlines()]
    times = [_phase_times(match) for match in matches if match]
    expected = [(phase, task) for phase in PHASES for task in range(tasks)]
    moved_bytes = [
        sum(task.read_bytes + task.write_bytes for task in times if task.phase == phase) for phase in PHASES
    ]
    if (
        len(times) != len(matches)
        or [(task.phase, task.task) for task in times] != expected
        or moved_bytes != [matrices_bytes, 2 * matrices_bytes, matrices_bytes]
    ):
        raise ProbeFailed(f"unreadable output of madbench at {resource}: {text[-300:]!r}", resource=resource)
    return times


def _phase_times(match: re.Match[str]) -> PhaseTimes:
    phase, task, read_bytes, read_seconds, write_bytes, *seconds = match.groups()
    return PhaseTimes(
        phase, int(task), int(read_bytes), float(read_seconds), int(write_bytes), *map(float, seconds)
    )


def phase_metrics(times: Sequence[PhaseTimes]) -> list[Measurement]:
    """Return the metrics of one phase. Each time is the maximum over the tasks."""
    name = f"madbench.{times[0].phase.lower()}"
    moved_bytes = sum(task.read_bytes + task.write_bytes for task in times)
    io_seconds = max(task.io_seconds for task in times)
    return [
        Measurement(f"{name}.seconds", max(task.seconds for task in times), "seconds"),
        Measurement(f"{name}.busy.seconds", max(task.busy_seconds for task in times), "seconds"),
        Measurement(f"{name}.io.seconds", io_seconds, "seconds"),
        Measurement(f"{name}.wait.seconds", max(task.wait_seconds for task in times), "seconds"),
        Measurement(f"{name}.bytes", moved_bytes, "bytes"),
        *rates.bytes_per_second(f"{name}.bytes_per_second", moved_bytes, io_seconds),
    ]


def overall_metrics(phases: Sequence[Sequence[PhaseTimes]]) -> list[Measurement]:
    """Return the metrics of all phases. Read and write rates exclude waits for other tasks."""
    read_bytes = sum(task.read_bytes for times in phases for task in times)
    write_bytes = sum(task.write_bytes for times in phases for task in times)
    io_seconds = sum(max(task.io_seconds for task in times) for times in phases)
    read_seconds = sum(max(task.read_seconds for task in times) for times in phases)
    write_seconds = sum(max(task.write_seconds for task in times) for times in phases)
    return [
        Measurement("madbench.bytes", read_bytes + write_bytes, "bytes"),
        *rates.bytes_per_second("madbench.bytes_per_second", read_bytes + write_bytes, io_seconds),
        *rates.bytes_per_second("madbench.read.bytes_per_second", read_bytes, read_seconds),
        *rates.bytes_per_second("madbench.write.bytes_per_second", write_bytes, write_seconds),
    ]
