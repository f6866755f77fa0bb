"""Report a slot whose run did not start: by the site's policy, or in a maintenance window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import probes
from probes.base import InvalidParameters, UnknownProbe, checked_plan
from reporters import host
from reporters.config import Assignment
from reporters.report import Clock, ProbeIdentity, Report, run_id
from reporters.run import identity


def skipped(
    assignment: Assignment,
    reason: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
) -> Report:
    """Return the report of the run *assignment* with the outcome ``skipped``.

    Probe and parameters are those that the run would have had, so that the report belongs to the same segment
    of its series.
    """
    probe, parameters = _measured(assignment)
    at = now()
    return Report(
        run=run_id(assignment.series, assignment.slot),
        series=assignment.series,
        slot=assignment.slot,
        reporter=assignment.reporter,
        probe=probe,
        parameters=parameters,
        started_at=at,
        seconds=0.0,
        outcome="skipped",
        reason=reason,
        stages=(),
        metrics=(),
        failure=None,
        log=(),
        environment=host.environment(),
        clock=Clock(at, host.clock_is_synchronised()),
        bindings={role: tuple(names) for role, names in assignment.bindings.items()},
        usage={},
    )


def _measured(assignment: Assignment) -> tuple[ProbeIdentity, Mapping[str, Any]]:
    try:
        probe = probes.load(assignment.probe)
    except UnknownProbe:
        return ProbeIdentity(assignment.probe, "", ""), dict(assignment.parameters)
    try:
        parameters = checked_plan(probe, assignment.bindings, assignment.parameters).parameters
    except InvalidParameters:
        parameters = assignment.parameters
    return identity(assignment.probe, probe), dict(parameters)
