"""Replay: do to files what an application does, and measure how long each class of call takes.

An I/O signature (docs/storage.md) says what the tasks of an application read, write and wait for. The replay
has as many tasks, which are processes, and the same barriers, locks, cache state and pauses. Its times at two
storage areas compare them for this application; where the signature came from, they show whether the replay
is faithful.
"""

from __future__ import annotations

import re

from probes.base import InvalidParameters, Measurement, NoData, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, files, jobs, kernels
from probes.common.io_classes import IO_CLASSES, WAITS, TaskTimes, io_metrics
from probes.common.signature import BadSignature, parse
from probes.grid import Grid, Location

_BUILD_BYTES = 1_000_000

# Arguments: scratch directory, kernel, think. A full disk takes no error before the files are removed.
JOB = """\
cd "$1" && rm -rf played && mkdir played || exit 1
errors=$("$2" plan played "$3" 2>&1 > times)
status=$?
rm -rf played
[ -z "$errors" ] || echo "$errors" >&2
exit "$status"
"""
# Of the file system, as a whole number of kibibytes.
_FREE = 'df -Pk "$1" | awk "END { print \\$4 }"'

_CLASS = r" {0} (\d+) (\d+) (\d+\.\d+)"
_TASK = re.compile(r"task (\d+)" + "".join(_CLASS.format(name) for name in (*IO_CLASSES, *WAITS)))
_ELAPSED = re.compile(r"elapsed (\d+\.\d+)")

_TRIAL = (
    '{"format":"gridcast-io-signature","version":1,"source":"trace","application":null,"tasks":2,'
    '"memory_bytes":1073741824,"calls":{"read":16,"write":18,"sync":2,"metadata":6},'
    '"bytes":{"read":65536,"write":65536},"seconds":{"read":0.0001,"write":0.0001,"sync":0.001,"metadata":0.0001,'
    '"wait":0.0001,"think":0.0001},"elapsed_seconds":0.003,"phases":[],"approximated":0.0,"files":[{"name":"f0",'
    '"count":2,"initial_bytes":0,"final_bytes":32768,"cached":0.0,"direct":false,"tasks":1}],"programs":[{'
    '"tasks":[0,2],"files":[[0,1,1,0]],"body":[{"op":"open","file":0,"flags":51},{"times":8,"body":[{"op":"write",'
    '"file":0,"size":4096,"at":[0,4096]}]},{"op":"fsync","file":0},{"op":"barrier"},{"times":8,"body":[{'
    '"op":"read","file":0,"size":4096,"at":[28672,-4096]}]},{"op":"close","file":0}]}]}'
)


class Probe:
    kind = "application"
    version = "1.0"
    summary = "Plays the I/O of an application from its signature."
    roles = {"target": Role(1, 1, "runs the batch job and has the files in its scratch directory")}
    parameters = {
        "signature": Parameter("", "what gridcast-reporter iotrace signature wrote"),
        "signature_digest": Parameter(
            "", "16 hexadecimal digits; a signature with others is refused, unless empty"
        ),
        "think": Parameter(
            "spin", "computes, sleeps or does nothing between calls", choices=("spin", "sleep", "none")
        ),
        "wall_seconds": jobs.WALL_SECONDS,
    }
    trial = {"signature": _TRIAL}
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
        self.think = plan.text("think")
        try:
            self.signature = parse(plan.text("signature"))
        except BadSignature as error:
            raise InvalidParameters(f"signature: {error}") from None
        wanted = plan.text("signature_digest")
        if wanted and wanted != self.signature.digest:
            raise InvalidParameters(f"signature: its digest is {self.signature.digest}, expected {wanted}")
        self.wall_seconds = jobs.wall_seconds(grid, plan)

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(_BUILD_BYTES, ["cc"])})
        text = self.grid.shell(self.target).check(
            ["sh", "-c", _FREE, "sh", self.grid.scratch(self.target)],
            timeout_seconds=60.0,
            doing="find the free space",
        )
        needed = self.signature.needed_bytes
        if text.strip().isdecimal() and int(text) * 1024 < needed + _BUILD_BYTES:
            raise NoData(
                f"the signature's files have {needed:,} bytes, the scratch directory at {self.target} has "
                f"{int(text) * 1024:,} free"
            )

    def build_executable(self) -> None:
        self.executable = kernels.build_kernel(
            self.grid, self.target, "replay", libraries=["-lm", "-lpthread"], headers=["checked"]
        )
        plan = Location(self.target, f"{self.grid.scratch(self.target)}/plan")
        files.write_file(self.grid, plan, self.signature.plan)

    def queue_wait(self) -> list[Measurement]:
        argv = ["sh", "-c", JOB, "replay", self.grid.scratch(self.target), self.executable, self.think]
        self.job = self.grid.submit(
            self.target, argv, cpus=self.signature.tasks, wall_seconds=self.wall_seconds
        )
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        self.job.wait_ended()
        text = jobs.read_job_file(self.grid, self.target, "times", what="times")
        tasks, elapsed_seconds = parse_times(text, self.signature.tasks, self.target)
        self._compare_bytes(tasks)
        return io_metrics(tasks, elapsed_seconds)

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _compare_bytes(self, tasks: list[TaskTimes]) -> None:
        """Log a warning if the replay did not move what the application did."""
        for name, expected in (("read", self.signature.bytes_read), ("write", self.signature.bytes_written)):
            moved = sum(task.bytes[name] for task in tasks)
            if abs(moved - expected) > 0.01 * expected:
                self.grid.log(
                    f"the replay's {name} bytes are {moved:,}, the application's {expected:,}", "warning"
                )


def parse_times(text: str, tasks: int, resource: str) -> tuple[list[TaskTimes], float]:
    """Return the times of each task, and the elapsed seconds, of the output of the kernel.

    Raises:
        ProbeFailed: a task is missing, or a line cannot be read.
    """
    *lines, last = text.splitlines() or [""]
    matches = [_TASK.fullmatch(line) for line in lines]
    elapsed = _ELAPSED.fullmatch(last)
    if elapsed is None or [int(match[1]) if match else -1 for match in matches] != list(range(tasks)):
        raise ProbeFailed(f"unreadable output of replay at {resource}: {text[-300:]!r}", resource=resource)
    return [_times(match) for match in matches if match], float(elapsed[1])


def _times(match: re.Match[str]) -> TaskTimes:
    names = (*IO_CLASSES, *WAITS)
    calls, moved, seconds = (match.groups()[first::3] for first in (1, 2, 3))
    return TaskTimes(
        dict(zip(names, map(int, calls))),
        dict(zip(names, map(int, moved))),
        dict(zip(names, map(float, seconds))),
    )
