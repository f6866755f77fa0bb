"""Batch queue: the waiting time of a minimal job.

The job requests little and does nothing, so other jobs in the queue rarely wait for a shorter time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from probes.base import Measurement, Parameter, Role, RunPlan, Stage, Value
from probes.common import checks
from probes.grid import Grid


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Submits a job that does nothing and measures its waiting time in the queue."
    roles = {"target": Role(1, 1, "has the batch system")}
    parameters = {
        "cpus": Parameter(1, "processors that the job requests", 1, 1e6),
        "wall_seconds": Parameter(60.0, "wall-clock limit that the job requests, seconds", 1.0, 864_000.0),
    }
    trial: ClassVar[Mapping[str, Value]] = {}
    stages = (
        Stage("init", "setup"),
        Stage("queue_wait", "queue"),
        Stage("compute", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.cpus = plan.integer("cpus")
        self.wall_seconds = float(plan.parameters["wall_seconds"])

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(0, ("true",))})

    def queue_wait(self) -> list[Measurement]:
        self.job = self.grid.submit(self.target, ["true"], cpus=self.cpus, wall_seconds=self.wall_seconds)
        return [Measurement("queue.seconds", self.job.wait_started(), "seconds")]

    def compute(self) -> list[Measurement]:
        return [Measurement("job.seconds", self.job.wait_ended(), "seconds")]

    def cleanup(self) -> None:
        self.grid.clean_up()
