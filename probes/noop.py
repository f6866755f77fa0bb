"""Noop: do nothing. The duration of a run is the overhead of gridcast, which every run contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from probes.base import Parameter, Role, RunPlan, Stage, Value
from probes.grid import Grid


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Does nothing: measures the overhead of a run."
    roles = {"target": Role(1, 1, "is bound to the run, but not contacted")}
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    trial: ClassVar[Mapping[str, Value]] = {}
    stages = (Stage("init", "setup"), Stage("cleanup", "cleanup"))

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")

    def init(self) -> None:
        """Contact nothing: the run passes even if the target is unreachable."""

    def cleanup(self) -> None:
        self.grid.clean_up()
