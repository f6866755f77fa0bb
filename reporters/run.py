"""Run one probe and return a report, whatever happens. Only this module catches every exception.

The stages of a probe are called in order and timed with the monotonic clock. The cleanup stage always comes
last, with a limit of its own. The sites are cleaned up even if the probe's own cleanup fails.
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
from reporters.grid import RunGrid
from reporters.outcome import CLEANUP, HARMLESS, StageException, decide
from reporters.report import (
    LEVELS,
    MOST_METRICS,
    Clock,
    LogLine,
    MetricValue,
    ProbeIdentity,
    Report,
    StageTiming,
    run_id,
)
from reporters.usage import ResourceUsage

SURVIVORS = "containment.survivors"  # the metric: processes at the reporter that had to be killed
PREPARE = "prepare"  # the stage of a failure before the first stage
_CLEANUP_STAGE = Stage(CLEANUP, "cleanup")


@dataclass(frozen=True)
class RunnerTools:
    """The dependencies of ``run``, which tests replace: loader of probes, grid and clocks."""

    load: Callable[[str], type[Probe]] = probes.load
    grid: Callable[[Assignment, Deadline, Callable[[str, str], None]], Any] = RunGrid
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)


def run(
    assignment: Assignment,
    *,
    on_stage: Callable[[str], None] = lambda _stage: None,
    tools: RunnerTools = RunnerTools(),
) -> Report:
    """Run *assignment*, after its warm-ups, and report on it. Calls *on_stage* with the name of each stage.

    The first warm-up that does not pass ends the run; ``run`` then returns the report of the warm-up. ``run``
    raises only exceptions that end a process, such as KeyboardInterrupt, after the cleanup.
    """
    log: list[LogLine] = []
    used: Mapping[str, ResourceUsage] = {}
    for number in range(1, assignment.warm_up_runs + 1):
        label = f"warm-up {number} of {assignment.warm_up_runs}"
        forgetful = replace(assignment, state_directory="")  # its values are discarded, so it is no step
        report = _Run(forgetful, on_stage, tools).report()
        if report.outcome != "passed":
            reason = report.reason if report.outcome == "skipped" else f"{label}: {report.reason}"
            return _with_warm_ups(replace(report, reason=reason), log, used)
        log.extend(_warm_up_log(label, report))
        used = usage.added(used, report.usage)
        assignment = replace(assignment, max_load1=None)  # the load is now that of the warm-ups
    return _with_warm_ups(_Run(assignment, on_stage, tools).report(), log, used)


def _warm_up_log(label: str, report: Report) -> list[LogLine]:
    """Return log lines with a warm-up's warnings, errors and duration, all at 0 seconds of the run."""
    duration = LogLine("info", 0.0, f"{label} took {report.seconds:.3f} s; its values are discarded")
    problems = [line for line in report.log if line.level in ("warning", "error")]
    return [*(LogLine(line.level, 0.0, f"{label}: {line.text}") for line in problems), duration]


def _with_warm_ups(report: Report, log: Sequence[LogLine], used: Mapping[str, ResourceUsage]) -> Report:
    return replace(report, log=(*log, *report.log), usage=usage.added(used, report.usage))


class _Run:
    def __init__(self, assignment: Assignment, on_stage: Callable[[str], None], tools: RunnerTools) -> None:
        self._assignment = assignment
        self._on_stage = on_stage
        self._tools = tools
        self._began = tools.monotonic()
        self._started_at = tools.now()
        self._stages: list[StageTiming] = []
        self._metrics: list[MetricValue] = []
        self._log: list[LogLine] = []
        self._troubles: list[StageException] = []
        self._deadline = Deadline(assignment.limit_seconds, tools.monotonic)
        self._parameters: Mapping[str, Any] = assignment.parameters
        self._identity = ProbeIdentity(assignment.probe, "", "")
        self._grid: Any = None

    def report(self) -> Report:
        """Run all stages and the cleanup; return the report."""
        probe = self._prepared()
        try:
            if probe is not None:
                self._run_stages(probe)
        finally:
            if self._grid is not None:
                self._clean_up(probe)
        return self._report()

    def _prepared(self) -> Probe | None:
        """Return the probe, ready to run, or None if its preparation failed."""
        probes: list[Probe] = []
        self._attempt(PREPARE, lambda: probes.append(self._prepare()))
        return probes[0] if probes else None

    def _prepare(self) -> Probe:
        probe = self._tools.load(self._assignment.probe)
        self._identity = identity(self._assignment.probe, probe)
        plan = checked_plan(probe, self._assignment.bindings, self._assignment.parameters)
        self._parameters = plan.parameters
        self._grid = self._tools.grid(self._assignment, self._deadline, self.log)
        self._guard(plan)
        return probe(self._grid, plan)

    def _guard(self, plan: RunPlan) -> None:
        """Raise TooBusy if the load of a resource is above the assignment's limit."""
        if self._assignment.max_load1 is not None:
            load.check(self._grid.shell, plan.all_resources(), self._assignment.max_load1, self.log)

    def _run_stages(self, probe: Probe) -> None:
        for stage in probe.stages:
            if stage.name != CLEANUP and not self._run_stage(stage, getattr(probe, stage.name)):
                return

    def _clean_up(self, probe: Probe | None) -> None:
        self._deadline.restart(self._assignment.cleanup_seconds, CLEANUP)
        actions = [self._grid.clean_up]  # does nothing if the probe has called it
        if probe is not None and any(stage.name == CLEANUP for stage in probe.stages):
            actions.insert(0, getattr(probe, CLEANUP, None))
        self._run_stage(_CLEANUP_STAGE, *actions)
        if survivors := self._grid.survivors():
            self._metrics.append(MetricValue(SURVIVORS, float(survivors), "processes"))

    def _run_stage(self, stage: Stage, *actions: Callable[[], Iterable[Measurement] | None]) -> bool:
        """Run all *actions* as one stage, even if one of them fails; return whether all succeeded."""
        self._announce(stage.name)
        began = self._tools.monotonic()
        try:
            passed = [self._attempt(stage.name, partial(self._measure, stage, action)) for action in actions]
            return all(passed)
        finally:
            seconds = self._tools.monotonic() - began
            self._stages.append(StageTiming(stage.name, stage.category, seconds, began - self._began))

    def _measure(self, stage: Stage, action: Callable[[], Iterable[Measurement] | None]) -> None:
        self._deadline.check(f"beginning {stage.name}")
        for metric in action() or ():
            if not math.isfinite(metric.value) or any(metric.name == other.name for other in self._metrics):
                raise ValueError(f"the metric {metric.name} is not finite or measured twice: {metric.value}")
            if len(self._metrics) == MOST_METRICS - 1:  # one more is kept for that of the runner
                raise ValueError(f"a report has at most {MOST_METRICS - 1} metrics of its probe")
            self._metrics.append(MetricValue(metric.name, float(metric.value), metric.unit))

    def _attempt(self, stage: str, action: Callable[[], None]) -> bool:
        """Call *action* and record its exception, if any; return whether *action* succeeded."""
        try:
            action()
        except Exception as error:  # noqa: BLE001  # the only place that catches every exception
            self._troubles.append(StageException(stage, error))
            self._log_trouble(stage, error)
            return False
        return True

    def _announce(self, stage: str) -> None:
        self.log(f"{stage} begins")
        try:
            self._on_stage(stage)
        except Exception as error:  # noqa: BLE001  # a listener must not change the outcome
            self.log(f"the listener for stages failed at {stage}: {error!r}", "warning")

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log."""
        level = level if level in LEVELS else "info"
        self._log.append(LogLine(level, self._tools.monotonic() - self._began, text))

    def _log_trouble(self, stage: str, error: Exception) -> None:
        if isinstance(error, (*HARMLESS, ProbeFailed)):
            self.log(f"{stage}: {error}", "info" if isinstance(error, HARMLESS) else "error")
        else:
            self.log("".join(traceback.format_exception(type(error), error, error.__traceback__)), "error")

    def _report(self) -> Report:
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
    """Return the probe's name, version and SHA-256 of the source of its module, also from a zip archive."""
    try:
        source = inspect.getsource(sys.modules[probe.__module__])
    except (OSError, TypeError):  # a class without a source file
        return ProbeIdentity(name, probe.version, "")
    return ProbeIdentity(name, probe.version, hashlib.sha256(source.encode()).hexdigest())
