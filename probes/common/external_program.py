"""A base class for probes that run a program of another monitoring system, such as Nagios or Inca."""

from __future__ import annotations

import shlex

from probes.base import InvalidParameters, Parameter, ProbeFailed, RunPlan
from probes.common import checks
from probes.grid import Completed, Grid

MAX_LOG_LINES = 100
_LINE_CHARACTERS = 1000


class ExternalProgramProbe:
    """Checks and runs one program at one resource. Subclasses interpret the output of the program."""

    kind = "grid"
    parameters = {
        "command": Parameter(
            "",
            "program at the target and its arguments, quoted as for a shell; readers of the series see it",
        ),
        "timeout_seconds": Parameter(60.0, "time limit of the program, seconds", 0.1, 86_400.0),
    }

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.argv = parse_command(plan)
        self.timeout_seconds = float(plan.parameters["timeout_seconds"])

    def init(self) -> None:
        checks.check_resources(self.grid, {self.target: checks.Needs(0, self.argv[:1])})

    def run_program(self) -> Completed:
        """Run the program. Raises ProbeFailed if it is missing, cannot be executed or was killed."""
        completed = self.grid.shell(self.target).run(self.argv, timeout_seconds=self.timeout_seconds)
        problem = {126: "cannot be executed", 127: "was not found"}.get(completed.returncode, "")
        if 128 < completed.returncode < 192:
            problem = f"was killed by signal {completed.returncode - 128}"
        if problem:
            raise program_failed(f"{self.argv[0]} {problem} at {self.target}", self.target, completed)
        return completed

    def cleanup(self) -> None:
        self.grid.clean_up()


def parse_command(plan: RunPlan) -> list[str]:
    """Return the parameter ``command`` split into words as by a shell; no shell runs the command.

    Raises:
        InvalidParameters: a quote is not closed, or the command is empty.
    """
    command = plan.text("command")
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise InvalidParameters(f"command: {error} in {command!r}") from None
    if not argv or not argv[0]:
        raise InvalidParameters("command: expected a program and its arguments, got nothing")
    return argv


def program_failed(message: str, target: str, completed: Completed) -> ProbeFailed:
    """Return an error with *message* and the exit status and end of stderr of *completed*."""
    return ProbeFailed(
        message,
        resource=target,
        exit_status=completed.returncode,
        stderr_tail=completed.stderr[-4 * _LINE_CHARACTERS :],
    )


def log_lines(grid: Grid, lines: list[tuple[str, str]]) -> None:
    """Append *lines*, pairs (text, level), to the run's log, but at most ``MAX_LOG_LINES`` of them."""
    for text, level in lines[:MAX_LOG_LINES]:
        grid.log(text[:_LINE_CHARACTERS], level)
    if len(lines) > MAX_LOG_LINES:
        grid.log(f"{len(lines) - MAX_LOG_LINES} more lines were cut", "warning")
