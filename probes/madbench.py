"""MADbench: several processes write, rewrite and read out-of-core matrices.

An application benchmark for storage, after the I/O mode of MADbench2 (J. Borrill, L. Oliker, J. Shalf, H.
Shan, Investigation of leading HPC I/O performance using a scientific-application derived benchmark, SC'07):
an analysis of the cosmic microwave background in which busy work replaces all computation. As in the
original, tasks use POSIX I/O or MPI-IO, and have a file each or one for all; in each group of *rmod*
neighbouring tasks only one task reads at a time, in each group of *wmod* tasks only one task writes. Unlike
the original, the job synchronises the tasks after each phase. Every value that is read is verified, and a
phase ends when its data are on the storage device. The first edition of MADbench read its matrices twice and
did not rewrite them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, jobs, kernels, rates, tracing
from probes.grid import Grid

PHASES = {1: "SIR", 2: "SWC"}  # by edition: write, read, read; write, rewrite, read
VALUE_BYTES = 8

# Runs a task of a phase. MPI starts it without arguments, and says which task it is.
TASK = """\
task=${1:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}}}
file=matrices
[ "$sharing" = shared ] || file=matrices.$task
if [ -n "$trace" ]; then
  GRIDCAST_IOTRACE_TASK=$task LD_PRELOAD=$trace
  export GRIDCAST_IOTRACE_TASK LD_PRELOAD
fi
exec "$madbench" "$phase" "$file" "$sharing" "$no_pix" "$no_bin" "$task" "$tasks" "$exponent" \
  "readers.$((task / rmod))" "writers.$((task / wmod))" > "times.$phase.$task"
"""
# Arguments: scratch directory, the script TASK, kernel, no_pix, no_bin, tasks, rmod, wmod, busy exponent,
# sharing, I/O method, traced or not, phases.
JOB = f"""\
cd "$1" || exit 1
run_task=$2 madbench=$3 no_pix=$4 no_bin=$5 tasks=$6 rmod=$7 wmod=$8 exponent=$9
shift 9
sharing=$1 io_method=$2 trace=$3
shift 3
[ -z "$trace" ] || {{ {tracing.BEGIN}; }}
[ "$sharing" = own ] || : > matrices
export madbench no_pix no_bin tasks rmod wmod exponent sharing trace phase
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
for phase; do
  task=0 running= status=0
  if [ "$io_method" = mpiio ]; then
    mpirun -n "$tasks" sh -c "$run_task" ||
      {{ status=$?; echo "a task of phase $phase failed with status $status" >&2; }}
  else
    while [ "$task" -lt "$tasks" ]; do
      sh -c "$run_task" sh "$task" &
      running="$running $!" task=$((task + 1))
    done
    task=0
    for process in $running; do
      wait "$process" || {{ status=$?; echo "task $task of phase $phase failed with status $status" >&2; }}
      task=$((task + 1))
    done
  fi
  task=0
  while [ "$task" -lt "$tasks" ]; do
    cat "times.$phase.$task" >> times
    task=$((task + 1))
  done
  [ "$status" -eq 0 ] || exit "$status"
done
"""

_SECONDS = r"(\d+\.\d+)"
_TIMES = re.compile(
    rf"phase ([SWCIR]) task (\d+) read (\d+) bytes in {_SECONDS} write (\d+) bytes in {_SECONDS} "
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
    version = "1.1"
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
        "io_method": Parameter(
            "posix", "POSIX calls, or MPI-IO by mpicc and mpirun", choices=("posix", "mpiio")
        ),
        "sharing": Parameter("own", "a file for each task, or one shared file", choices=("own", "shared")),
        "edition": Parameter(
            2, "of MADbench: 2 (phases S, W, C: write, rewrite, read) or 1 (S, I, R: write, read, read)", 1, 2
        ),
        "trace": tracing.TRACE,
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
        self.groups = [str(plan.parameters[name]) for name in ("rmod", "wmod", "busy_exponent")]
        self.io_method, self.sharing = plan.text("io_method"), plan.text("sharing")
        self.phases = PHASES[plan.integer("edition")]
        self.is_traced = bool(plan.parameters["trace"])
        self.wall_seconds = jobs.wall_seconds(grid, plan)

    def init(self) -> None:
        compilers = ["mpicc", "mpirun"] if self.io_method == "mpiio" else ["cc"]
        tools = [*compilers, *(["cc"] if self.is_traced else [])]
        needs = checks.Needs(self._matrices_bytes(), list(dict.fromkeys(tools)))
        checks.check_resources(self.grid, {self.compute_resource: needs})

    def build_executable(self) -> None:
        is_mpi = self.io_method == "mpiio"
        self.executable = kernels.build_kernel(
            self.grid,
            self.compute_resource,
            "madbench",
            options=["-O2", "-DMADBENCH_MPI"] if is_mpi else ["-O2"],
            libraries=["-lm"],
            headers=["checked"],
            compiler="mpicc" if is_mpi else "cc",
        )
        self.tracer = tracing.build_tracer(self.grid, self.compute_resource) if self.is_traced else ""

    def queue_wait(self) -> list[Measurement]:
        directory = self.grid.scratch(self.compute_resource)
        sizes = [str(number) for number in (self.no_pix, self.no_bin, self.tasks)]
        options = [self.sharing, self.io_method, self.tracer, *self.phases]
        argv = ["sh", "-c", JOB, "madbench", directory, TASK, self.executable, *sizes, *self.groups, *options]
        self.job = self.grid.submit(
            self.compute_resource, argv, cpus=self.tasks, wall_seconds=self.wall_seconds
        )
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        self.job.wait_ended()
        text = jobs.read_job_file(self.grid, self.compute_resource, "times", what="times")
        times = parse_times(text, self.tasks, self._matrices_bytes(), self.compute_resource, self.phases)
        phases = [[task for task in times if task.phase == phase] for phase in self.phases]
        metrics = [metric for phase in phases for metric in phase_metrics(phase)] + overall_metrics(phases)
        if self.is_traced:
            metrics += tracing.traced_metrics(self.grid, self.compute_resource)
        return metrics

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _matrices_bytes(self) -> int:
        return VALUE_BYTES * self.no_pix * self.no_pix * self.no_bin


def parse_times(
    text: str, tasks: int, matrices_bytes: int, resource: str, phases: str = PHASES[2]
) -> list[PhaseTimes]:
    """Parse the output of the job, one line per task and phase; return the lines in the same order.

    *matrices_bytes* is the size of all matrices of all tasks.

    Raises:
        ProbeFailed: a task or phase is missing, or a phase did not read or write all matrices.
    """
    matches = [_TIMES.fullmatch(line) for line in text.splitlines()]
    times = [_phase_times(match) for match in matches if match]
    expected = [(phase, task) for phase in phases for task in range(tasks)]
    moved_bytes = [
        sum(task.read_bytes + task.write_bytes for task in times if task.phase == phase) for phase in phases
    ]
    if (
        len(times) != len(matches)
        or [(task.phase, task.task) for task in times] != expected
        or moved_bytes != [matrices_bytes * (2 if phase == "W" else 1) for phase in phases]
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
