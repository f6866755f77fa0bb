"""Circle: copy one file round a ring of resources; the file must return unchanged.

One of the two grid probes of the GrASP project (Grid Assessment Probes). The links are used one after
another, so a failure identifies one link.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from probes.base import Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, copies, files, rates
from probes.grid import Grid, Location


@dataclass(frozen=True)
class Hop:
    """One link of the ring; *number* counts from 1."""

    number: int
    source: str
    target: str

    @property
    def name(self) -> str:
        return f"hop.{self.number}.{self.source}-{self.target}"


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Copies a file round a ring of resources and verifies its checksum at every hop."
    roles = {"ring": Role(2, 64, "visited in this order; the last copies the file back to the first")}
    parameters = {
        "file_bytes": Parameter(100_000_000, "size of the file, bytes", 1, 1e13),
        **copies.COPY_PARAMETERS,
    }
    trial = {"file_bytes": 10_000}
    stages = (
        Stage("init", "setup"),
        Stage("stage_data", "setup"),
        Stage("transfer_ring", "transfer"),
        Stage("compare", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.ring = list(plan.bindings["ring"])
        self.file_bytes = plan.integer("file_bytes")
        self.copy_options = copies.copy_options(plan)

    def init(self) -> None:
        tools = ("sha256sum", "dd", "cmp")
        first, *others = self.ring
        needs = {first: checks.Needs(2 * self.file_bytes, tools)}  # the original and the returned file
        needs.update((resource, checks.Needs(self.file_bytes, ("sha256sum",))) for resource in others)
        checks.check_resources(self.grid, needs)
        links = [(hop.source, hop.target) for hop in self._hops()]
        checks.check_transfers(self.grid, links, self.copy_options)

    def stage_data(self) -> None:
        files.make_random_file(self.grid, self._original(), self.file_bytes)
        self.digest = files.sha256(self.grid, self._original())

    def transfer_ring(self) -> list[Measurement]:
        file, metrics = self._original(), []
        for hop in self._hops():
            file, hop_metrics = self._copy(hop, file)
            metrics += hop_metrics
        self.returned = file
        seconds = sum(metric.value for metric in metrics if metric.unit == "seconds")
        return [
            *metrics,
            *rates.bytes_per_second("ring.bytes_per_second", self.file_bytes * len(self.ring), seconds),
        ]

    def compare(self) -> None:
        self.grid.shell(self.ring[0]).check(
            ["cmp", self._original().path, self.returned.path],
            timeout_seconds=files.CHECKSUM_TIMEOUT_SECONDS,
            doing="compare the returned file with the original byte by byte",
        )

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _original(self) -> Location:
        return Location(self.ring[0], f"{self.grid.scratch(self.ring[0])}/original.dat")

    def _hops(self) -> list[Hop]:
        targets = self.ring[1:] + self.ring[:1]
        return [Hop(number, *ends) for number, ends in enumerate(zip(self.ring, targets), start=1)]

    def _copy(self, hop: Hop, file: Location) -> tuple[Location, list[Measurement]]:
        target = Location(hop.target, f"{self.grid.scratch(hop.target)}/hop-{hop.number}.dat")
        copy = self.grid.copy(file, target, self.copy_options)
        began = time.monotonic()
        self._verify(hop, target)
        return target, [
            *copies.transfer_metrics(hop.name, copy),
            Measurement(f"{hop.name}.checksum.seconds", time.monotonic() - began, "seconds"),
        ]

    def _verify(self, hop: Hop, file: Location) -> None:
        digest = files.sha256(self.grid, file)
        if digest != self.digest:
            raise ProbeFailed(
                f"the file was damaged in hop {hop.number} from {hop.source} to {hop.target}: "
                f"SHA-256 {digest}, {self.digest} when created",
                resource=hop.target,
            )
