"""Lookups: load a database file, find rows by an index, and scan the table.

The file is one of SQLite, which almost every Python has. A look-up reads two pages anywhere in the file, a
scan reads all rows in order: between a disk and flash, look-ups gain up to a hundred times, scans little. The
page cache is told to drop the file before each look-up and scan; a file system that keeps data in memory of
its own (ZFS, tmpfs) is measured with it. Every answer is checked. ``kernels/lookups.py`` runs at the site.
"""

from __future__ import annotations

from probes.base import Measurement, NoData, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, files, kernels, rates, tracing
from probes.common.fullness import scratch_fullness
from probes.grid import Grid, Location

_INDEX_BYTES = 24  # of a row, at most
_PROGRAM_BYTES = 1_000_000
_MOST_SECONDS = 864_000.0  # the time limit of the run ends the kernel earlier


class Probe:
    kind = "application"
    version = "1.0"
    summary = "Loads a database file, looks up rows by an index, and scans the table."
    roles = {"target": Role(1, 1, "has the database in its scratch directory")}
    parameters = {
        "rows": Parameter(200_000, "rows of the table", 1, 1_000_000_000),
        "row_bytes": Parameter(400, "content of a row, bytes", 1, 100_000),
        "lookups": Parameter(1000, "rows that are looked up, chosen at random", 1, 1_000_000_000),
        "scans": Parameter(1, "scans of the table", 1, 1000),
        "seed": Parameter(1, "number that chooses the order of the index, and the rows", 0, 2**31 - 1),
        "trace": tracing.TRACE,
    }
    trial = {"rows": 2000, "lookups": 20}
    stages = (
        Stage("init", "setup"),
        Stage("load", "compute"),
        Stage("lookup", "compute"),
        Stage("scan", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid = grid
        self.target = plan.resource("target")
        self.table = [plan.integer(name) for name in ("rows", "row_bytes", "seed")]
        self.lookups, self.scans = plan.integer("lookups"), plan.integer("scans")
        self.is_traced = bool(plan.parameters["trace"])

    def init(self) -> list[Measurement]:
        rows, row_bytes, _ = self.table
        tools = ["python3", "cc"] if self.is_traced else ["python3"]
        needs = checks.Needs(2 * rows * (row_bytes + _INDEX_BYTES) + _PROGRAM_BYTES, tools)
        checks.check_resources(self.grid, {self.target: needs})
        found = self.grid.shell(self.target).run(["python3", "-c", "import sqlite3"], timeout_seconds=60.0)
        if found.returncode != 0:
            raise NoData(f"Python at {self.target} has no module sqlite3")
        self.program = f"{self.grid.scratch(self.target)}/lookups.py"
        source = kernels.kernel_source("lookups", suffix=".py")
        files.write_file(self.grid, Location(self.target, self.program), source)
        self.tracer = tracing.build_tracer(self.grid, self.target) if self.is_traced else ""
        return scratch_fullness(self.grid, self.target)

    def load(self) -> list[Measurement]:
        _, size_bytes, seconds = self._run("load")
        return [
            Measurement("load.seconds", seconds, "seconds"),
            *rates.bytes_per_second("load.bytes_per_second", size_bytes, seconds),
        ]

    def lookup(self) -> list[Measurement]:
        operations, _, seconds = self._run("lookup", self.lookups)
        metrics = [Measurement("lookup.seconds", seconds / operations, "seconds")]
        if seconds > 0:
            metrics.append(
                Measurement("lookup.operations_per_second", operations / seconds, "operations_per_second")
            )
        return metrics

    def scan(self) -> list[Measurement]:
        operations, size_bytes, seconds = self._run("scan", self.scans)
        return [
            Measurement("scan.seconds", seconds / operations, "seconds"),
            *rates.bytes_per_second("scan.bytes_per_second", size_bytes, seconds),
            *(tracing.traced_metrics(self.grid, self.target) if self.is_traced else []),
        ]

    def cleanup(self) -> None:
        self.grid.clean_up()

    def _run(self, command: str, *times: int) -> tuple[int, int, float]:
        numbers = [str(number) for number in (*self.table, *times)]
        file = f"{self.grid.scratch(self.target)}/lookups.db"
        argv = ["python3", self.program, command, file, *numbers]
        if self.is_traced:
            argv = tracing.traced(self.grid, self.target, self.tracer, argv)
        text = self.grid.shell(self.target).check(
            argv,
            timeout_seconds=_MOST_SECONDS,
            doing=f"{command} the database",
        )
        return parse_result(text, command, self.target)


def parse_result(text: str, command: str, resource: str) -> tuple[int, int, float]:
    """Return operations, bytes and seconds of the kernel's *command*. Raises ProbeFailed for other output."""
    try:
        name, operations, size_bytes, seconds = text.split()
        result = int(operations), int(size_bytes), float(seconds)
    except ValueError:
        name, result = "", (0, 0, 0.0)
    if name != command or result[0] < 1:
        raise ProbeFailed(f"unreadable output of lookups at {resource}: {text[-200:]!r}", resource=resource)
    return result
