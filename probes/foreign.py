"""What probes share that run a program written for another monitoring system.

The program is somebody else's: what it prints is text from outside. Its names become names of metrics that a
report and a page can hold, its units SI units, and there are never more than ``MAX_METRICS`` of them.
"""

from __future__ import annotations

import math
import re
import shlex

from probes import steps
from probes.base import InvalidParameters, Metric, Parameter, Plan, ProbeFailed
from probes.grid import Completed, Grid

MAX_METRICS = 200  # a report has 256 KiB
MAX_LOG_LINES = 100
_LINE_CHARACTERS = 1000
_PART_CHARACTERS = 100  # of a name
_NAME_CHARACTERS = 190  # of the 200 that a report takes: a number may come behind
_UNIT_CHARACTERS = 50
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_PER_SECOND = re.compile(r"(.+?)(?:/ ?(?:s|sec|second)|ps)")

_SECONDS = {
    "h": 3600.0,
    "hours": 3600.0,
    "min": 60.0,
    "minutes": 60.0,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
}
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXES.update({f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", start=1)})
# B is the byte and b the bit: of 8 bits a byte is made here, so that all rates compare.
_BYTES = {
    f"{prefix}{name}": factor / bits
    for prefix, factor in _PREFIXES.items()
    for bits, names in ((1, ("B", "byte", "bytes", "Byte", "Bytes")), (8, ("b", "bit", "bits")))
    for name in names
}


class ProgramProbe:
    """Runs one program at one target, in a stage and with a verdict of the convention that it follows."""

    kind = "grid"
    parameters = {
        "command": Parameter(
            "",
            "program at the target and its arguments, quoted as for a shell; all who see the series see it",
        ),
        "timeout_seconds": Parameter(60.0, "how long the program may run, seconds", 0.1, 86_400.0),
    }

    def __init__(self, grid: Grid, plan: Plan) -> None:
        self.grid = grid
        self.target = plan.one("target")
        self.argv = argv_of(plan)
        self.timeout_seconds = float(plan.parameters["timeout_seconds"])

    def init(self) -> None:
        steps.check_resources(self.grid, {self.target: steps.Needs(0, self.argv[:1])})

    def run_program(self) -> Completed:
        """Raises ProbeFailed where it did not end by itself, or is not there."""
        done = self.grid.shell(self.target).run(self.argv, timeout_seconds=self.timeout_seconds)
        how = {126: "cannot be executed", 127: "was not found"}.get(done.returncode, "")
        if 128 < done.returncode < 192:
            how = f"was killed by signal {done.returncode - 128}"
        if how:
            raise failed(f"{self.argv[0]} {how} at {self.target}", self.target, done)
        return done

    def cleanup(self) -> None:
        self.grid.clean_up()


def argv_of(plan: Plan) -> list[str]:
    """The parameter ``command`` as an argv list; no shell will see it. Raises InvalidParameters."""
    command = plan.text("command")
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise InvalidParameters(f"command: {error} in {command!r}") from None
    if not argv or not argv[0]:
        raise InvalidParameters("command: expected a program and its arguments, got nothing")
    return argv


def failed(message: str, target: str, done: Completed) -> ProbeFailed:
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


def si_unit(unit: str) -> tuple[float, str]:
    """What to multiply values by that are in *unit*, and the unit that they have then.

    A prefix is decimal (KB: 1000 bytes) unless it says otherwise (KiB): guidelines leave it open, Icinga and
    SI read it so. A unit that is not known stays what it is.
    """
    text = unit.strip()
    rate = _PER_SECOND.fullmatch(text)
    if rate is not None and rate[1].strip() in _BYTES:
        return _BYTES[rate[1].strip()], "bytes_per_second"
    if text in _BYTES:
        return _BYTES[text], "bytes"
    if text.lower() in _SECONDS:
        return _SECONDS[text.lower()], "seconds"
    if text.lower() in ("%", "percent"):
        return 0.01, "ratio"
    if text in ("", "c"):  # things, and a counter of things
        return 1.0, "count"
    return 1.0, safe_name(text)[:_UNIT_CHARACTERS]


def safe_name(text: str) -> str:
    """*text* with letters, digits and ``_.-`` only; never empty."""
    return _UNSAFE.sub("_", text)[:_PART_CHARACTERS].strip("_") or "_"


class Measurements:
    """Metrics with names from outside: made unique, finite and not too many. What is left out is counted."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._left_out = 0

    def add(self, name: str, value: float, unit: str) -> None:
        """Add one; *name* is safe already. A name that is taken gets a number."""
        if len(self._metrics) >= MAX_METRICS or not math.isfinite(value):
            self._left_out += 1
            return
        unique, number = name[:_NAME_CHARACTERS], 1
        while unique in self._metrics:
            number += 1
            unique = f"{name[:_NAME_CHARACTERS]}.{number}"
        self._metrics[unique] = Metric(unique, value, unit)

    def taken(self, grid: Grid) -> list[Metric]:
        """All of them; what was left out is logged."""
        if self._left_out:
            grid.log(
                f"{self._left_out} values were left out: not finite, or more than {MAX_METRICS} metrics",
                "warning",
            )
        return list(self._metrics.values())
