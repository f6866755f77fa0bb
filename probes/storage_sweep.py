"""Storage sweep: measure combinations of request size, pattern, queue depth and more, over several runs.

A pass measures each combination once, in an order of its own; a sweep has at least six passes. A run measures
what its time limit allows of one pass, and the next run goes on. The metric ``sweep.pass`` says to which pass
the values of a run belong, ``sweep.began`` to which sweep. ``manage.py sweep`` exports them for ``python -m
forecasting effects``.

Each task uses its own file, or its part of a shared one; the data are the same bytes in each. fio reads and
writes if it is installed, otherwise gridcast's own kernel. Direct I/O needs a file system that has it, cached
I/O data of at least twice the memory; otherwise the outcome is ``no_data``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from probes.base import InvalidParameters, Measurement, Parameter, ProbeFailed, Role, RunPlan, Stage
from probes.common import checks, memory, passes, storage_design, storage_tools
from probes.common.fullness import scratch_fullness
from probes.common.passes import SweepPosition, SweepState
from probes.common.privileged import SETTINGS, PrivilegedSettings, parse_settings
from probes.common.storage_design import Combination, FileLayout
from probes.grid import Grid

_BUILD_BYTES = 1_000_000
_MARGIN_SECONDS = 2.0  # between the last measurement and the limit of the run


class Probe:
    kind = "grid"
    version = "1.0"
    summary = "Sweeps parameters of I/O to the scratch file system, to tell which of them matters."
    roles = {"target": Role(1, 1, "has the scratch directory")}
    parameters = {
        **storage_design.FACTORS,
        "settings": SETTINGS,
        "share": Parameter(1.0, "part of all combinations that is measured, chosen by the seed", 1e-6, 1.0),
        "file_bytes": Parameter(268_435_456, "size of all data, bytes", 4096, 1e15),
        "seconds": Parameter(10.0, "duration of one measurement, seconds", 0.01, 3600.0),
        "passes": passes.PASSES,
        "seed": passes.SEED,
        "tool": storage_tools.TOOL,
        "engine": storage_tools.ENGINE,
    }
    trial = {
        "request_bytes": "65536",
        "queue_depth": "1",
        "file_bytes": 1_048_576,
        "seconds": 0.05,
        "tool": "own",
    }
    stages = (
        Stage("init", "setup"),
        Stage("build_executable", "setup"),
        Stage("prepare", "setup"),
        Stage("sweep", "compute"),
        Stage("cleanup", "cleanup"),
    )

    def __init__(self, grid: Grid, plan: RunPlan) -> None:
        self.grid, self.plan = grid, plan
        self.target = plan.resource("target")
        self.factors = parse_settings(plan.text("settings"))
        self.cells = storage_design.combinations(plan, self.factors)
        self.seconds = float(plan.parameters["seconds"])
        self.design = storage_design.digest(plan, self.cells)
        self.layouts = sorted({cell.layout for cell in self.cells})
        self.settings = PrivilegedSettings(grid, self.target, self.factors, self._remember_settings)
        self.began = time.monotonic()
        self.measured = 0
        self.measuring_seconds = 0.0
        self.state = SweepState()
        self.position: SweepPosition | None = None  # known after init
        self._check_sizes()

    def init(self) -> list[Measurement]:
        self._recall()
        needed_bytes = len(self.layouts) * self.plan.integer("file_bytes") + _BUILD_BYTES
        checks.check_resources(self.grid, {self.target: checks.Needs(needed_bytes, ())})
        if not all(cell.is_direct for cell in self.cells):
            memory.check_twice_the_memory(self.grid, self.target, self.plan.integer("file_bytes"))
        self.tool = self._chosen_tool()
        self._begin_settings()
        return scratch_fullness(self.grid, self.target)

    def build_executable(self) -> None:
        self.tool.build()

    def prepare(self) -> None:
        is_direct = any(cell.is_direct for cell in self.cells)
        for layout in self.layouts:
            part_bytes = self._part_bytes(layout.files)
            self.tool.prepare(self._files(layout), layout.files, part_bytes, is_direct=is_direct)
        if isinstance(self.tool, storage_tools.FioTool):
            self.tool.choose_engine(f"{self._files(self.layouts[0])}.0", is_direct=is_direct)
        self.grid.log(f"measured by {self.tool.name}")

    def sweep(self) -> Iterator[Measurement]:
        """Measure the rest of the pass, until the run's limit is near; yield each value when it is known."""
        position = self._known_position()
        yield from passes.first_metrics("sweep", position)
        order = passes.order(len(self.cells), self.plan.integer("seed"), position)[position.done :]
        longest = self.seconds
        for number in order[: passes.MOST_VALUES]:
            if self.grid.remaining_seconds() < longest + _MARGIN_SECONDS:
                self._need_one(longest)
                return
            began = time.monotonic()
            yield self._measure(self.cells[number], position)
            longest = max(longest, time.monotonic() - began)

    def cleanup(self) -> list[Measurement]:
        measured = self._finish()
        try:
            self.settings.restore()
        finally:
            self.grid.clean_up()
        return measured

    def _measure(self, cell: Combination, position: SweepPosition) -> Measurement:
        self.settings.apply(cell.privileged)
        files, part_bytes = self._files(cell.layout), self._part_bytes(cell.tasks)
        seed = 1000 * position.number + position.done + self.measured
        result = self.tool.measure(cell, files, part_bytes, self.seconds, seed)
        if result.seconds <= 0.0:
            raise ProbeFailed(f"the clock at {self.target} is too coarse for {self.seconds:g} s")
        self.measured += 1
        self.measuring_seconds += result.seconds
        return Measurement(cell.metric(), result.size_bytes / result.seconds, "bytes_per_second")

    def _finish(self) -> list[Measurement]:
        """Remember the position after the measured combinations, and return what was done."""
        if self.position is None or not self.measured:
            return []
        passes_wanted = self.plan.integer("passes")
        after = self.position.advanced(self.measured, len(self.cells), passes_wanted)
        self._remember(SweepState(self.design, after, self.state.restore))
        remaining = len(self.cells) - self.position.done - self.measured
        share = self.measuring_seconds / (time.monotonic() - self.began)
        return [
            *passes.last_metrics("sweep", self.measured, remaining),
            Measurement("sweep.measuring.share", share, "ratio"),
        ]

    def _recall(self) -> None:
        text = self.grid.recall()
        try:
            self.state = passes.parse_state(text)
        except ValueError as error:
            self.grid.log(f"what the last run remembered is {error}: a new sweep begins", "warning")
        is_same = self.state.design == self.design
        position = self.state.position if is_same else None
        self.position = position or SweepPosition(began=int(time.time()))
        passes_wanted = self.plan.integer("passes")
        self.grid.log(
            f"pass {self.position.number} of {passes_wanted}: {self.position.done} of {len(self.cells)} "
            "combinations were measured before"
        )

    def _known_position(self) -> SweepPosition:
        assert self.position is not None  # noqa: S101 - init has set it
        return self.position

    def _remember(self, state: SweepState) -> bool:
        self.state = state
        return self.grid.remember(state.to_text())

    def _remember_settings(self, original: Mapping[str, str]) -> None:
        state = SweepState(self.state.design, self.state.position, dict(original) or None)
        if not self._remember(state) and original:
            raise InvalidParameters(
                "settings: this reporter keeps nothing between runs, so a kill would leave them changed; "
                "give `once` the option --state DIRECTORY"
            )

    def _begin_settings(self) -> None:
        left = self.state.restore or {}
        if self.factors or left:
            self.settings.begin(left)

    def _check_sizes(self) -> None:
        largest = max(cell.request_bytes for cell in self.cells)
        most_tasks = max(cell.tasks for cell in self.cells)
        if self._part_bytes(most_tasks) < largest:
            raise InvalidParameters(
                f"file_bytes: {most_tasks} tasks with requests of {largest} bytes need at least "
                f"{most_tasks * largest}"
            )
        if self.plan.text("engine") == "psync" and any(cell.queue_depth > 1 for cell in self.cells):
            raise InvalidParameters("engine: psync has one request in flight: queue_depth must be 1")

    def _chosen_tool(self) -> storage_tools.SweepTool:
        wanted = self.plan.text("tool")
        if wanted == "auto":
            found = self.grid.shell(self.target).run(["fio", "--version"], timeout_seconds=60.0)
            wanted = "fio" if found.returncode == 0 else "own"
        if wanted == "fio":
            self.grid.check_tools(self.target, ["fio"])
            return storage_tools.FioTool(self.grid, self.target, self.plan.text("engine"))
        self.grid.check_tools(self.target, ["cc"])
        return storage_tools.KernelTool(self.grid, self.target)

    def _need_one(self, seconds: float) -> None:
        if not self.measured:
            raise ProbeFailed(
                f"the run's limit leaves {self.grid.remaining_seconds():.1f} s after the preparation, and a "
                f"measurement needs {seconds + _MARGIN_SECONDS:.1f} s",
                resource=self.target,
            )

    def _files(self, layout: FileLayout) -> str:
        return f"{self.grid.scratch(self.target)}/sweep{layout.files}"

    def _part_bytes(self, tasks: int) -> int:
        """Return the bytes of one of *tasks* tasks, in whole blocks of direct I/O."""
        part = self.plan.integer("file_bytes") // tasks
        return part - part % 4096
