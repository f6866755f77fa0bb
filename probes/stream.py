"""Stream: sustainable memory bandwidth of a compute node.

After the description of STREAM: J. D. McCalpin, "Memory bandwidth and machine balance in current high
performance computers", IEEE TCCA Newsletter (December 1995) 19-25. Four loops run over arrays that exceed the
caches; the fastest repetition determines the rate, and every element is verified. The kernel is compiled at
the site and runs as a batch job. ``kernels/stream.c`` explains how the tasks share the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.base import Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, jobs, kernels, rates
from probes.grid import Grid

LOOPS = ("copy", "scale", "add", "triad")
MIN_ARRAY_CACHE_RATIO = 4  # STREAM: each array at least four times the sum of the last-level caches
_OUTPUT = "stream.out"
_JOB = f'cd "$1" && shift && "$@" > {_OUTPUT}\n'


@dataclass(frozen=True)
class Loop:
    """The results of one loop: the bytes that a repetition moves, and the times of the repetitions."""

    size_bytes: int
    fastest_seconds: float
    mean_seconds: float
    slowest_seconds: float


@dataclass(frozen=True)
class StreamResult:
    """The output of the kernel. *cache_bytes* is the size of the caches, 0 if the node reports no caches."""

    cache_bytes: int
    array_bytes: int
    loops: dict[str, Loop]


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Measures memory bandwidth with the loops of STREAM, in a batch job."
    roles = {"target": Role(1, 1, "runs the job")}
    parameters = {
        "array_bytes": Parameter(
            0, "size of each of the three arrays, bytes; 0 is four times the last-level caches", 0, 1e13
        ),
        "repetitions": Parameter(10, "repetitions of each loop; the first is not counted", 2, 1000),
        "tasks": Parameter(1, "processes that share the arrays, one per processor", 1, 1024),
        "wall_seconds": jobs.WALL_SECONDS,
    }
    trial = {"array_bytes": 1_000_000, "repetitions": 3}
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("queue_wait", "queue"),
        Stage("compute", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.arguments = [str(plan.integer(name)) for name in ("array_bytes", "repetitions", "tasks")]
        self.tasks = plan.integer("tasks")
        self.wall_seconds = jobs.wall_seconds(grid, plan)

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(1_000_000, ("cc",))})

    def build_executable(self) -> None:
        self.executable = kernels.build_kernel(
            self.grid, self.target, "stream", options=("-O3", "-pthread"), libraries=("-lm",)
        )

    def queue_wait(self) -> list[Measurement]:
        directory = self.grid.scratch(self.target)
        argv = ["sh", "-c", _JOB, "stream", directory, self.executable, *self.arguments]
        self.job = self.grid.submit(self.target, argv, cpus=self.tasks, wall_seconds=self.wall_seconds)
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        self.job.wait_ended()
        text = jobs.read_job_file(self.grid, self.target, _OUTPUT, what="output")
        result = parse_result(text, self.target)
        self._warn_of_small_arrays(result)
        return [
            Measurement("array.bytes", result.array_bytes, "bytes"),
            Measurement("cache.bytes", result.cache_bytes, "bytes"),
            *(
                metric
                for name, loop in result.loops.items()
                for metric in rates.bytes_per_second(
                    f"{name}.bytes_per_second", loop.size_bytes, loop.fastest_seconds
                )
            ),
        ]

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _warn_of_small_arrays(self, result: StreamResult) -> None:
        if result.array_bytes < MIN_ARRAY_CACHE_RATIO * result.cache_bytes:
            self.grid.log(
                f"arrays of {result.array_bytes} bytes are less than four times the last-level caches "
                f"({result.cache_bytes} bytes): rates include the caches",
                "warning",
            )


def parse_result(text: str, resource: str) -> StreamResult:
    """Parse the output of the kernel. Raises ProbeFailed if a line is missing or unreadable."""
    try:
        fields = {name: rest for name, *rest in (line.split() for line in text.splitlines())}
        return StreamResult(
            cache_bytes=int(fields["cache"][0]),
            array_bytes=int(fields["array"][0]),
            loops={name: _loop(fields[name]) for name in LOOPS},
        )
    except (KeyError, ValueError, IndexError):
        message = f"unreadable output of stream at {resource}: {text[-200:]!r}"
        raise ProbeFailed(message, resource=resource) from None


def _loop(words: list[str]) -> Loop:
    size, fastest, mean, slowest = words
    return Loop(int(size), float(fastest), float(mean), float(slowest))
