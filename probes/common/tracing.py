"""Trace the tasks of an application probe, and report their seconds by class of I/O call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from probes.base import Measurement, Parameter, ProbeFailed
from probes.common import kernels
from probes.common.io_classes import io_metrics
from probes.common.io_counters import COUNTERS_BYTES, BadCounters, ProcessCounters, parse_counters, task_times
from probes.grid import Grid

TRACE = Parameter(
    False, "records the calls of the tasks, and reports seconds by class: io.read.seconds and others"
)

# In the job, in its scratch directory, before its first task. Each task is then run with LD_PRELOAD, the path
# of the tracer, and GRIDCAST_IOTRACE_TASK, its number.
BEGIN = (
    "rm -rf trace && mkdir trace && GRIDCAST_IOTRACE=$(pwd -P)/trace GRIDCAST_IOTRACE_AREAS=$(pwd -P) && "
    "GRIDCAST_IOTRACE_BYTES=0 && export GRIDCAST_IOTRACE GRIDCAST_IOTRACE_AREAS GRIDCAST_IOTRACE_BYTES"
)
# Arguments: scratch directory, tracer, program ... . Programs that run one after another are one task.
_RUN = """\
cd "$1" && mkdir -p trace && here=$(pwd -P) && tracer=$2 && shift 2 || exit 1
exec env GRIDCAST_IOTRACE="$here/trace" GRIDCAST_IOTRACE_AREAS="$here" GRIDCAST_IOTRACE_BYTES=0 \
  GRIDCAST_IOTRACE_TASK=0 LD_PRELOAD="$tracer" "$@"
"""
_READ = 'cd "$1" && for part in *.part; do od -v -An -tx1 -N "$2" "$part" | tr -d " \\n"; echo; done'


def build_tracer(grid: Grid, resource: str) -> str:
    """Compile the tracer at *resource* and return its path."""
    return kernels.build_kernel(
        grid,
        resource,
        "iotrace",
        options=("-O2", "-shared", "-fPIC"),
        libraries=("-ldl", "-lpthread"),
    )


def traced(grid: Grid, resource: str, tracer: str, argv: Sequence[str]) -> list[str]:
    """Return a command that runs *argv*, one of the programs of a single task, with the *tracer*."""
    return ["sh", "-c", _RUN, "sh", grid.scratch(resource), tracer, *argv]


def traced_metrics(grid: Grid, resource: str) -> list[Measurement]:
    """Return the metrics of tasks that have ended. Raises ProbeFailed if there are no counters."""
    text = grid.shell(resource).check(
        ["sh", "-c", _READ, "sh", f"{grid.scratch(resource)}/trace", str(COUNTERS_BYTES)],
        timeout_seconds=60.0,
        doing="read the counters of the traced tasks",
    )
    try:
        processes = [parse_counters(bytes.fromhex(line)) for line in text.splitlines()]
    except (BadCounters, ValueError) as error:
        raise ProbeFailed(
            f"unreadable counters of iotrace at {resource}: {error}", resource=resource
        ) from None
    by_task: dict[int, list[ProcessCounters]] = defaultdict(list)
    for process in processes:
        by_task[process.task].append(process)
    elapsed = max(process.ended for process in processes) - min(process.began for process in processes)
    return io_metrics([task_times(task) for task in by_task.values()], max(elapsed, 0) * 1e-9)
