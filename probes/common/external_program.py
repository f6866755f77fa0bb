"""Probes that run a program written for another monitoring system, such as Nagios or Inca."""

from __future__ import annotations

import shlex

from probes.base import InvalidParameters, Parameter, ProbeFailed, RunPlan
from probes.common import checks
from probes.grid import Completed, Grid

MAX_LOG_LINES = 100
_LINE_CHARACTERS = 1000


class ExternalProgramProbe:
    """Runs one program at one target, in a stage and with a verdict of the convention that it follows."""

    kind = "grid"
    parameters = {
        "command": Parameter(
            "",
            "program at the target and its arguments, quoted as for a shell; all who see the series see it",
        ),
        "timeout_seconds": Parameter(60.0, "how long the program may run, seconds", 0.1, 86_400.0),
    }

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.argv = parse_command(plan)
        self.timeout_seconds = float(plan.parameters["timeout_seconds"])

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(0, self.argv[:1])})

    def run_program(self) -> Completed:
        """Raises ProbeFailed where it did not end by itself, or is not there."""
        done = self.grid.shell(self.target).run(self.argv, timeout_seconds=self.timeout_seconds)
        how = {126: "cannot be executed", 127: "was not found"}.get(done.returncode, "")
        if 128 < done.returncode < 192:
            how = f"was killed by signal {done.returncode - 128}"
        if how:
            raise program_failed(f"{self.argv[0]} {how} at {self.target}", self.target, done)
        return done

    def cleanup(self) -> None:
        self.grid.clean_up()


def parse_command(plan: RunPlan) -> list[str]:
    """The parameter ``command`` as an argv list; no shell will see it. Raises InvalidParameters."""
    command = plan.text("command")
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise InvalidParameters(f"command: {error} in {command!r}") from None
    if not argv or not argv[0]:
        raise InvalidParameters("command: expected a program and its arguments, got nothing")
    return argv


def program_failed(message: str, target: str, done: Completed) -> ProbeFailed:
    """The error *message* about a program that ended."""
    return ProbeFailed(
        message,
        resource=target,
        exit_status=done.returncode,
        stderr_tail=done.stderr[-4 * _LINE_CHARACTERS :],
    )


def log_lines(grid: Grid, lines: list[tuple[str, str]]) -> None:
    """Add lines, each (text, level), to the run's log; as many as are readable."""
    for text, level in lines[:MAX_LOG_LINES]:
        grid.log(text[:_LINE_CHARACTERS], level)
    if len(lines) > MAX_LOG_LINES:
        grid.log(f"{len(lines) - MAX_LOG_LINES} more lines were cut", "warning")
