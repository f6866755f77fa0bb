"""PreCo: copy a tilt series to a compute resource, reconstruct a volume from it, copy the volume on.

An application benchmark: electron tomography by filtered back projection (Kak and Slaney, Principles of
Computerized Tomographic Imaging, IEEE Press 1988, chapter 3), in float32. The object is the
three-dimensional Shepp-Logan head phantom. Its projections have a closed form, so the result can be verified.

Projections exist only between -60 and 60 degrees. No projection measures the spatial frequencies in the
*missing wedge* between the other angles, so no method can restore these frequencies. The reference is
therefore the phantom without the missing wedge; the unfiltered volume is correlated with this reference
within the cylinder that every projection covers. A second metric is the correlation with the complete
phantom. ``kernels/phantom.c`` computes both correlations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import InvalidParameters, Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, copies, files, jobs, kernels, tracing
from probes.grid import Grid, Location

TILT_DEGREES = 60
MIN_CORRELATION = 0.9
MAX_PIXELS_PER_PROJECTION = 34  # with more, streaks alone spoil the correlation of a thin volume
HEADER_BYTES = 1024  # of the MRC format
VALUE_BYTES = 4

# Arguments: scratch directory, both executables, tracer or nothing, thickness, tilt, and each task's end
# slice (exclusive).
JOB = f"""\
cd "$1" || exit 1
backproject=$2 phantom=$3 trace=$4 thickness=$5 tilt=$6
shift 6
[ -z "$trace" ] || {{ {tracing.BEGIN}; }} || exit 1
task=0 first=0 running=
for end; do
  ${{trace:+env "LD_PRELOAD=$trace" "GRIDCAST_IOTRACE_TASK=$task"}} \\
    "$backproject" input.mrc "slab.$task" "$first" "$end" "$thickness" "$tilt" > "task.$task" &
  running="$running $!" first=$end task=$((task + 1))
done
status=0 task=0
for process in $running; do
  wait "$process" || {{ status=$?; echo "task $task of backproject failed with status $status" >&2; }}
  task=$((task + 1))
done
[ "$status" -eq 0 ] || exit "$status"
task=0
for process in $running; do
  cat "slab.$task" >> volume.mrc && rm "slab.$task" && cat "task.$task" >> tasks || exit 1
  task=$((task + 1))
done
"$phantom" compare volume.mrc "$tilt" > comparison || exit
sha256sum input.mrc volume.mrc > checksums
"""

_SECONDS = r"(\d+\.\d+)"
_TASK = re.compile(
    rf"slices (\d+) (\d+) read {_SECONDS} filter {_SECONDS} backproject {_SECONDS} "
    rf"write {_SECONDS} seconds {_SECONDS}"
)
_COMPARISON = re.compile(r"slices \d+ compared \d+ correlation (-?\d\.\d+) plain (-?\d\.\d+)")


@dataclass(frozen=True)
class TaskTiming:
    """One task of the job: the task reconstructed slices *first* to *end* (exclusive) in *seconds*."""

    first: int
    end: int
    seconds: float


@dataclass(frozen=True)
class Correlations:
    """Pearson's correlations of the volume with the phantom.

    Attributes:
        without_wedge: correlation with the phantom without the missing wedge.
        plain: correlation with the complete phantom.
    """

    without_wedge: float
    plain: float


class Probe:
    kind = "application"
    version = "1.0"
    summary = "Reconstructs a volume from a tilt series by filtered back projection and delivers it."
    roles = {
        "source": Role(1, 1, "creates the tilt series"),
        "compute": Role(1, 1, "reconstructs the volume in a batch job"),
        "destination": Role(1, 1, "receives the volume"),
    }
    parameters = {
        "projections": Parameter(61, "projections from -60 to 60 degrees", 41, 1201),
        "size": Parameter(512, "width and height of a projection, pixels; slices of the volume", 32, 2048),
        "thickness": Parameter(0, "extent of the volume along the beam, voxels; 0 is the size", 0, 2048),
        "tasks": Parameter(2, "processes that share the slices", 1, 256),
        "native": Parameter(True, "compile for the processor of the host that compiles"),
        "trace": tracing.TRACE,
        **copies.COPY_PARAMETERS,
        "wall_seconds": jobs.WALL_SECONDS,
    }
    trial = {"projections": 41, "size": 32}
    stages = (
        Stage("init", "setup"),
        Stage("stage_data", "setup"),
        Stage("build_executable", "setup"),
        Stage("transfer_data", "transfer"),
        Stage("queue_wait", "queue"),
        Stage("compute", "compute"),
        Stage("transfer_results", "transfer"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.source = plan.resource("source")
        self.compute_resource = plan.resource("compute")
        self.destination = plan.resource("destination")
        self.projections = plan.integer("projections")
        self.size = plan.integer("size")
        self.thickness = plan.integer("thickness") or self.size
        if self.projections * MAX_PIXELS_PER_PROJECTION < self.size:
            raise InvalidParameters(
                f"projections: {self.projections} are too few for {self.size} pixels, "
                f"needs {-(-self.size // MAX_PIXELS_PER_PROJECTION)}"
            )
        self.ends = slab_ends(self.size, plan.integer("tasks"))
        self.native = bool(plan.parameters["native"])
        self.is_traced = bool(plan.parameters["trace"])
        self.copy_options = copies.copy_options(plan)
        self.wall_seconds = jobs.wall_seconds(grid, plan)

    def init(self) -> None:
        checks.check_resources(self.grid, self._needs())
        links = [(self.source, self.compute_resource), (self.compute_resource, self.destination)]
        checks.check_transfers(self.grid, links, self.copy_options)

    def stage_data(self) -> None:
        phantom = self._build(self.source, "phantom")
        series = self._series()
        numbers = [str(number) for number in (self.size, self.projections, TILT_DEGREES)]
        self.grid.shell(self.source).check(
            [phantom, "project", series.path, *numbers],
            timeout_seconds=files.GENERATE_TIMEOUT_SECONDS,
            doing=f"make {self.projections} projections of the phantom",
        )
        self.series_digest = files.sha256(self.grid, series)

    def build_executable(self) -> None:
        self.executables = [self._build(self.compute_resource, name) for name in ("backproject", "phantom")]
        self.tracer = tracing.build_tracer(self.grid, self.compute_resource) if self.is_traced else ""

    def transfer_data(self) -> list[Measurement]:
        copy = self.grid.copy(self._series(), self._at_compute("input.mrc"), self.copy_options)
        return copies.transfer_metrics("transfer", copy)

    def queue_wait(self) -> list[Measurement]:
        directory = self.grid.scratch(self.compute_resource)
        numbers = [str(number) for number in (self.thickness, TILT_DEGREES, *self.ends)]
        argv = ["sh", "-c", JOB, "preco", directory, *self.executables, self.tracer, *numbers]
        tasks = len(self.ends)
        self.job = self.grid.submit(self.compute_resource, argv, cpus=tasks, wall_seconds=self.wall_seconds)
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        self.job.wait_ended()
        tasks = parse_tasks(self._read("tasks"), self.ends, self.compute_resource)
        correlations = parse_correlations(self._read("comparison"), self.compute_resource)
        self._check_correlation(correlations)
        self.volume_digest = self._check_digests()
        return [
            *self._task_metrics([task.seconds for task in tasks]),
            Measurement("preco.correlation", correlations.without_wedge, "ratio"),
            Measurement("preco.correlation.plain", correlations.plain, "ratio"),
            *(tracing.traced_metrics(self.grid, self.compute_resource) if self.is_traced else []),
        ]

    def transfer_results(self) -> list[Measurement]:
        target = Location(self.destination, f"{self.grid.scratch(self.destination)}/result.mrc")
        volume = self._at_compute("volume.mrc")
        copy = copies.copy_verified(
            self.grid, volume, target, self.copy_options, what="the volume", digest=self.volume_digest
        )
        moved_bytes = self._series_bytes() + self._volume_bytes()
        return [
            *copies.transfer_metrics("transfer.results", copy),
            Measurement("preco.moved.bytes", moved_bytes, "bytes"),
        ]

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _series_bytes(self) -> int:
        return HEADER_BYTES + VALUE_BYTES * self.size * self.size * self.projections

    def _volume_bytes(self) -> int:
        return HEADER_BYTES + VALUE_BYTES * self.size * self.size * self.thickness

    def _needs(self) -> dict[str, checks.Needs]:
        needed_bytes = dict.fromkeys((self.source, self.compute_resource, self.destination), 0)
        needed_bytes[self.source] += self._series_bytes()
        # Twice the volume: slabs, and the volume that they are joined to.
        needed_bytes[self.compute_resource] += self._series_bytes() + 2 * self._volume_bytes()
        needed_bytes[self.destination] += self._volume_bytes()
        compilers = {self.source, self.compute_resource}
        return {
            name: checks.Needs(size, ["cc", "sha256sum"] if name in compilers else ["sha256sum"])
            for name, size in needed_bytes.items()
        }

    def _build(self, resource: str, kernel: str) -> str:
        build = kernels.build_native_kernel if self.native else kernels.build_kernel
        return build(self.grid, resource, kernel, libraries=["-lm"], headers=["checked", "tomography"])

    def _series(self) -> Location:
        return Location(self.source, f"{self.grid.scratch(self.source)}/tilt-series.mrc")

    def _at_compute(self, name: str) -> Location:
        return Location(self.compute_resource, f"{self.grid.scratch(self.compute_resource)}/{name}")

    def _read(self, name: str) -> str:
        return jobs.read_job_file(self.grid, self.compute_resource, name, what=name)

    def _check_correlation(self, correlations: Correlations) -> None:
        if correlations.without_wedge < MIN_CORRELATION:
            raise ProbeFailed(
                f"the volume made at {self.compute_resource} does not look like the phantom: correlation "
                f"{correlations.without_wedge:.3f} within the tilts, at least {MIN_CORRELATION} expected",
                resource=self.compute_resource,
            )

    def _check_digests(self) -> str:
        """Return the SHA-256 of the volume. Raises ProbeFailed if the tilt series was damaged on its way."""
        sums = files.parse_sha256sum(self._read("checksums"), self.compute_resource)
        digest = files.digest_of("input.mrc", sums, self.compute_resource)
        if digest != self.series_digest:
            raise ProbeFailed(
                f"the tilt series from {self.source} was damaged on its way to {self.compute_resource}: "
                f"SHA-256 {digest}, {self.series_digest} when created",
                resource=self.compute_resource,
            )
        return files.digest_of("volume.mrc", sums, self.compute_resource)

    def _task_metrics(self, seconds: Sequence[float]) -> list[Measurement]:
        """Return the metrics of tasks that took *seconds*; the slowest task determines the rates."""
        slowest, mean = max(seconds), sum(seconds) / len(seconds)
        voxels = self.size * self.size * self.thickness
        flops = estimated_flops(self.projections, self.size, self.thickness)
        each = [
            Measurement(f"preco.task.{task}.seconds", took, "seconds") for task, took in enumerate(seconds)
        ]
        return [
            Measurement("compute.voxels_per_second", voxels / slowest, "voxels_per_second"),
            Measurement("compute.flops_per_second", flops / slowest, "flops_per_second"),
            Measurement("preco.imbalance", slowest / mean - 1.0, "ratio"),
            *each,
        ]


def slab_ends(slices: int, tasks: int) -> list[int]:
    """Return the end slice (exclusive) of each task, for at most as many tasks as *slices*."""
    tasks = min(tasks, slices)
    return [slices * (task + 1) // tasks for task in range(tasks)]


def estimated_flops(projections: int, size: int, thickness: int) -> float:
    """Estimate the floating-point operations of a reconstruction.

    The back projection takes two products and two additions for each voxel and projection. The filter takes 5
    N log2 N + N operations for each row of a projection, where N is the smallest power of two that is at
    least twice *size*. This number is half the operations of two complex transforms of length N and of the
    product between the transforms. Operations on coordinates are not counted.
    """
    log2_length = (2 * size - 1).bit_length()
    rows, length = float(projections * size), 2.0**log2_length
    return 4.0 * rows * size * thickness + rows * length * (5 * log2_length + 1)


def parse_tasks(text: str, ends: Sequence[int], resource: str) -> list[TaskTiming]:
    """Parse the output of the job, one line per task. Raises ProbeFailed unless the tasks end at *ends*."""
    matches = [_TASK.fullmatch(line) for line in text.splitlines()]
    tasks = [TaskTiming(int(match[1]), int(match[2]), float(match[7])) for match in matches if match]
    expected = list(zip([0, *ends[:-1]], ends))
    is_complete = len(tasks) == len(matches) and [(task.first, task.end) for task in tasks] == expected
    if not is_complete or any(task.seconds <= 0 for task in tasks):
        raise ProbeFailed(
            f"unreadable output of backproject at {resource}: {text[-200:]!r}", resource=resource
        )
    return tasks


def parse_correlations(text: str, resource: str) -> Correlations:
    """Parse the output of ``phantom compare``. Raises ProbeFailed unless it is two correlations."""
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise ProbeFailed(f"unreadable output of phantom at {resource}: {text[-200:]!r}", resource=resource)
    return Correlations(float(match[1]), float(match[2]))
