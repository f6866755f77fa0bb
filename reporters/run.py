"""Runs one probe and always returns a report: the only place that catches everything.

The stages of a probe are called in order, timed with the monotonic clock. Whatever happens, the cleanup stage
comes last, with a limit of its own, and the sites are cleaned up even if the probe's own cleanup is broken.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

import probes
from probes.base import Measurement, Probe, ProbeFailed, RunPlan, Stage, checked_plan
from reporters import host, load, usage
from reporters.config import Assignment
from reporters.deadline import Deadline
from reporters.grid import Grid
from reporters.outcome import CLEANUP, HARMLESS, Trouble, decide
from reporters.report import (
    LEVELS,
    Clock,
    LogLine,
    MetricValue,
    ProbeIdentity,
    Report,
    StageTiming,
    run_id,
)
from reporters.usage import Usage

PREPARE = "prepare"  # what goes wrong before the first stage has this for its stage
_CLEANUP_STAGE = Stage(CLEANUP, "cleanup")


@dataclass(frozen=True)
class Tools:
    """What a runner uses; tests hand in others."""

    load: Callable[[str], type[Probe]] = probes.load
    grid: Callable[[Assignment, Deadline, Callable[[str, str], None]], Any] = Grid
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)


def run(
    assignment: Assignment,
    *,
    on_stage: Callable[[str], None] = lambda _stage: None,
    tools: Tools = Tools(),
) -> Report:
    """Do what *assignment* says and report on it. *on_stage* is told the name of each stage that begins.

    Raises nothing but what ends a process (KeyboardInterrupt ...), and that after the cleanup.
    """
    said: list[LogLine] = []
    used: dict[str, Usage] = {}
    for number in range(1, assignment.warm_up_runs + 1):
        what = f"warm-up {number} of {assignment.warm_up_runs}"
        report = _Run(assignment, on_stage, tools).report()
        if report.outcome != "passed":
            return _warm_up_ended(what, report, said, used)
        said.extend(_said_of(what, report))
        used = usage.together(used, report.usage or {})
        assignment = replace(assignment, max_load1=None)  # what there is now, warm-ups have made
    return _after_warm_ups(_Run(assignment, on_stage, tools).report(), said, used)


def _warm_up_ended(what: str, report: Report, said: Sequence[LogLine], used: Mapping[str, Usage]) -> Report:
    """What to report where the warm-up *report* was the last; its guard is not a part of it."""
    reason = report.reason if report.outcome == "skipped" else f"{what}: {report.reason}"
    return _after_warm_ups(replace(report, reason=reason), said, used)


def _said_of(what: str, report: Report) -> list[LogLine]:
    """What is worth keeping of a warm-up, as said before the run that counts began."""
    took = LogLine("info", 0.0, f"{what} took {report.seconds:.3f} s; its values are thrown away")
    worries = [line for line in report.log if line.level in ("warning", "error")]
    return [*(LogLine(line.level, 0.0, f"{what}: {line.text}") for line in worries), took]


def _after_warm_ups(report: Report, said: Sequence[LogLine], used: Mapping[str, Usage]) -> Report:
    return replace(report, log=(*said, *report.log), usage=usage.together(used, report.usage or {}))


class _Run:
    def __init__(self, assignment: Assignment, on_stage: Callable[[str], None], tools: Tools) -> None:
        self._assignment = assignment
        self._on_stage = on_stage
        self._tools = tools
        self._began = tools.monotonic()
        self._started_at = tools.now()
        self._stages: list[StageTiming] = []
        self._metrics: list[MetricValue] = []
        self._log: list[LogLine] = []
        self._troubles: list[Trouble] = []
        self._deadline = Deadline(assignment.limit_seconds, tools.monotonic)
        self._parameters: Mapping[str, Any] = assignment.parameters
        self._identity = ProbeIdentity(assignment.probe, "", "")
        self._grid: Any = None

    def report(self) -> Report:
        """Run everything and say what became of it."""
        probe = self._prepared()
        try:
            if probe is not None:
                self._run_stages(probe)
        finally:
            if self._grid is not None:
                self._clean_up(probe)
        return self._written()

    def _prepared(self) -> Probe | None:
        """The probe, ready to run; None where it cannot be had."""
        prepared: list[Probe] = []
        self._attempt(PREPARE, lambda: prepared.append(self._prepare()))
        return prepared[0] if prepared else None

    def _prepare(self) -> Probe:
        probe = self._tools.load(self._assignment.probe)
        self._identity = identity(self._assignment.probe, probe)
        plan = checked_plan(probe, self._assignment.bindings, self._assignment.parameters)
        self._parameters = plan.parameters
        self._grid = self._tools.grid(self._assignment, self._deadline, self.log)
        self._guard(plan)
        return probe(self._grid, plan)

    def _guard(self, plan: RunPlan) -> None:
        """Raise TooBusy while somebody else needs the resources."""
        if self._assignment.max_load1 is not None:
            load.check(self._grid.shell, plan.all_resources(), self._assignment.max_load1, self.log)

    def _run_stages(self, probe: Probe) -> None:
        for stage in probe.stages:
            if stage.name != CLEANUP and not self._run_stage(stage, getattr(probe, stage.name)):
                return

    def _clean_up(self, probe: Probe | None) -> None:
        self._deadline.restart(self._assignment.cleanup_seconds, CLEANUP)
        works = [self._grid.clean_up]  # does nothing where the probe has done it
        if probe is not None and any(stage.name == CLEANUP for stage in probe.stages):
            works.insert(0, getattr(probe, CLEANUP, None))
        self._run_stage(_CLEANUP_STAGE, *works)

    def _run_stage(self, stage: Stage, *works: Callable[[], Iterable[Measurement] | None]) -> bool:
        """Do all *works* as one stage, whichever of them fail; whether none did."""
        self._tell(stage.name)
        began = self._tools.monotonic()
        try:
            went_well = [self._attempt(stage.name, partial(self._do, stage, work)) for work in works]
            return all(went_well)
        finally:
            seconds = self._tools.monotonic() - began
            self._stages.append(StageTiming(stage.name, stage.category, seconds, began - self._began))

    def _do(self, stage: Stage, work: Callable[[], Iterable[Measurement] | None]) -> None:
        self._deadline.check(f"beginning {stage.name}")
        for metric in work() or ():
            if not math.isfinite(metric.value) or any(metric.name == other.name for other in self._metrics):
                raise ValueError(f"the metric {metric.name} is not finite or measured twice: {metric.value}")
            self._metrics.append(MetricValue(metric.name, float(metric.value), metric.unit))

    def _attempt(self, stage: str, work: Callable[[], None]) -> bool:
        """Do *work*; what it raises is noted. Whether it went well."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # the only place that catches everything
            self._troubles.append(Trouble(stage, error))
            self._log_trouble(stage, error)
            return False
        return True

    def _tell(self, stage: str) -> None:
        self.log(f"{stage} begins")
        try:
            self._on_stage(stage)
        except Exception as error:  # noqa: BLE001  # who listens must not decide what became of the run
            self.log(f"nobody was told that {stage} begins: {error!r}", "warning")

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log."""
        known = level if level in LEVELS else "info"
        self._log.append(LogLine(known, self._tools.monotonic() - self._began, text))

    def _log_trouble(self, stage: str, error: Exception) -> None:
        if isinstance(error, (*HARMLESS, ProbeFailed)):
            self.log(f"{stage}: {error}", "info" if isinstance(error, HARMLESS) else "error")
        else:
            self.log("".join(traceback.format_exception(type(error), error, error.__traceback__)), "error")

    def _written(self) -> Report:
        verdict = decide(self._troubles)
        assignment = self._assignment
        return Report(
            run=run_id(assignment.series, assignment.slot),
            series=assignment.series,
            slot=assignment.slot,
            reporter=assignment.reporter,
            probe=self._identity,
            parameters=dict(self._parameters),
            started_at=self._started_at,
            seconds=self._tools.monotonic() - self._began,
            outcome=verdict.outcome,
            reason=verdict.reason,
            stages=tuple(self._stages),
            metrics=tuple(self._metrics),
            failure=verdict.failure,
            log=tuple(self._log),
            environment=host.environment(),
            clock=Clock(self._tools.now(), host.clock_is_synchronised()),
            bindings={role: tuple(names) for role, names in assignment.bindings.items()},
            usage={} if self._grid is None else self._grid.usage(),
        )


@functools.cache
def identity(name: str, probe: type[Probe]) -> ProbeIdentity:
    """Which probe this is, down to its source file, which may lie inside a zip archive."""
    try:
        source = inspect.getsource(sys.modules[probe.__module__])
    except (OSError, TypeError):  # made at run time
        return ProbeIdentity(name, probe.version, "")
    return ProbeIdentity(name, probe.version, hashlib.sha256(source.encode()).hexdigest())
