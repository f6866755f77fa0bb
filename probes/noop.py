"""Noop: does nothing. Its total is what gridcast itself costs a run, which every other total contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from probes.base import Parameter, Role, RunPlan, Stage, Value
from probes.grid import Grid


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Does nothing: what a run costs without its probe."
    roles = {"target": Role(1, 1, "takes part, and is not touched")}
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    trial: ClassVar[Mapping[str, Value]] = {}
    stages = (Stage("init", "setup"), Stage("cleanup", "cleanup"))

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")

    def init(self) -> None:
        """Look at nothing: the target may be away."""

    def cleanup(self) -> None:
        self.grid.clean_up()
