"""Gather: copy files from all sources to a compute resource in parallel, aggregate them, copy the result.

One of the two grid probes of the GrASP project (Grid Assessment Probes). The probe communicates like an
application that collects distributed data.
"""

from __future__ import annotations

from probes.base import Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage, in_parallel
from probes.common import checks, copies, files, jobs, kernels, rates
from probes.grid import Grid, Location, Transferred

JOB = """\
set -e
cd "$1"
"$2" result.dat "$3" input-*.dat
sha256sum input-*.dat result.dat > checksums
"""


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Collects a file from every source in parallel, aggregates them and delivers the result."
    roles = {
        "sources": Role(1, 64, "each creates one input file"),
        "compute": Role(1, 1, "collects the inputs and aggregates them in a batch job"),
        "destination": Role(1, 1, "receives the result"),
    }
    parameters = {
        "file_bytes": Parameter(100_000_000, "size of each input file, bytes", 1, 1e13),
        "result_bytes": Parameter(500_000_000, "size of the result, bytes", 1, 1e13),
        **copies.COPY_PARAMETERS,
        "wall_seconds": jobs.WALL_SECONDS,
    }
    trial = {"file_bytes": 10_000, "result_bytes": 10_000}
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
        self.sources = list(plan.bindings["sources"])
        self.compute_resource = plan.resource("compute")
        self.destination = plan.resource("destination")
        self.file_bytes = plan.integer("file_bytes")
        self.result_bytes = plan.integer("result_bytes")
        self.copy_options = copies.copy_options(plan)
        self.wall_seconds = jobs.wall_seconds(grid, plan)
        self.digests: dict[str, str] = {}  # SHA-256 of the input file, by source

    def init(self) -> None:
        checks.check_resources(self.grid, self._needs())
        inputs = [(source, self.compute_resource) for source in self.sources]
        results = [(self.compute_resource, self.destination)]
        checks.check_transfers(self.grid, inputs + results, self.copy_options)

    def stage_data(self) -> None:
        self.digests = dict(zip(self.sources, in_parallel(self._make_input, self.sources)))

    def build_executable(self) -> None:
        self.executable = kernels.build_kernel(self.grid, self.compute_resource, "aggregate")

    def transfer_data(self) -> list[Measurement]:
        transfers = in_parallel(self._send_input, self.sources)
        total = Transferred(
            bytes=sum(transfer.bytes for transfer in transfers),
            seconds=max(transfer.seconds for transfer in transfers),
            streams=sum(transfer.streams for transfer in transfers),
            retries=sum(transfer.retries for transfer in transfers),
        )
        return copies.transfer_metrics("transfer", total) + [
            metric
            for source, transfer in zip(self.sources, transfers)
            for metric in copies.transfer_metrics(f"transfer.{source}", transfer)
        ]

    def queue_wait(self) -> list[Measurement]:
        directory = self.grid.scratch(self.compute_resource)
        argv = ["sh", "-c", JOB, "gather", directory, self.executable, str(self.result_bytes)]
        self.job = self.grid.submit(self.compute_resource, argv, cpus=1, wall_seconds=self.wall_seconds)
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        seconds = self.job.wait_ended()
        self.result_digest = self._check_digests()
        read_bytes = self.file_bytes * len(self.sources)
        return rates.bytes_per_second("compute.read.bytes_per_second", read_bytes, seconds)

    def transfer_results(self) -> list[Measurement]:
        target = Location(self.destination, f"{self.grid.scratch(self.destination)}/result.dat")
        result = self._at_compute("result.dat")
        copy = copies.copy_verified(
            self.grid, result, target, self.copy_options, what="the result", digest=self.result_digest
        )
        return copies.transfer_metrics("transfer.results", copy)

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _needs(self) -> dict[str, checks.Needs]:
        totals: dict[str, tuple[int, set[str]]] = {}  # one resource may have several roles

        def add(resource: str, size_bytes: int, *tools: str) -> None:
            total_bytes, all_tools = totals.get(resource, (0, {"sha256sum"}))
            totals[resource] = (total_bytes + size_bytes, all_tools | set(tools))

        for source in self.sources:
            add(source, self.file_bytes, "dd")
        add(self.compute_resource, self.file_bytes * len(self.sources) + self.result_bytes, "cc")
        add(self.destination, self.result_bytes)
        return {name: checks.Needs(size, sorted(tools)) for name, (size, tools) in totals.items()}

    def _input(self, source: str) -> Location:
        return Location(source, f"{self.grid.scratch(source)}/source.dat")

    def _at_compute(self, name: str) -> Location:
        return Location(self.compute_resource, f"{self.grid.scratch(self.compute_resource)}/{name}")

    def _make_input(self, source: str) -> str:
        files.make_random_file(self.grid, self._input(source), self.file_bytes)
        return files.sha256(self.grid, self._input(source))

    def _send_input(self, source: str) -> Transferred:
        target = self._at_compute(_input_name(source))
        return self.grid.copy(self._input(source), target, self.copy_options)

    def _check_digests(self) -> str:
        """Return the SHA-256 of the result. Raises ProbeFailed if an input differs from the file sent."""
        text = jobs.read_job_file(self.grid, self.compute_resource, "checksums", what="checksums")
        sums = files.parse_sha256sum(text, self.compute_resource)
        for source in self.sources:
            digest = files.digest_of(_input_name(source), sums, self.compute_resource)
            if digest != self.digests[source]:
                raise ProbeFailed(
                    f"the input from {source} was damaged on its way to {self.compute_resource}: SHA-256 "
                    f"{digest}, {self.digests[source]} when created",
                    resource=self.compute_resource,
                )
        return files.digest_of("result.dat", sums, self.compute_resource)


def _input_name(source: str) -> str:
    return f"input-{source}.dat"
