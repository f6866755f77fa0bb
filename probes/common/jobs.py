"""Batch jobs: the wall-clock limit to request, and the files that a job writes."""

from __future__ import annotations

from probes.base import Parameter, RunPlan
from probes.grid import Grid

DEFAULT_WALL_SECONDS = 1800.0
WALL_SECONDS = Parameter(
    DEFAULT_WALL_SECONDS,
    "wall-clock limit requested from the batch system, seconds; 0 requests twice the forecast",
    0.0,
    864_000.0,
)


def wall_seconds(grid: Grid, plan: RunPlan) -> float:
    """Return the wall-clock limit to request from the batch system.

    The limit is the parameter ``wall_seconds`` unless the parameter is 0. Then the limit is one minute more
    than twice the forecast upper bound of the compute stage, since batch systems count in minutes and kill a
    job at its limit; without a forecast the limit is ``DEFAULT_WALL_SECONDS``.
    """
    parameter_seconds = float(plan.parameters["wall_seconds"])
    if parameter_seconds > 0:
        return parameter_seconds
    expected_seconds = grid.expected_seconds("stage.compute.seconds")
    return DEFAULT_WALL_SECONDS if expected_seconds is None else 60.0 + 2.0 * expected_seconds


def read_job_file(grid: Grid, resource: str, name: str, *, what: str) -> str:
    """Return the text of the small file *name* that a job wrote in the scratch directory.

    *what* names the file in error messages.
    """
    return grid.shell(resource).check(
        ["cat", f"{grid.scratch(resource)}/{name}"], timeout_seconds=60.0, doing=f"read the job's {what}"
    )
