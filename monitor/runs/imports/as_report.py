"""Build the report of an imported run, in the wire format that reporters send."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from monitor.runs.ledger.attribution import GRID_FAILURES
from reporters import report as wire

if TYPE_CHECKING:
    import uuid

    from monitor.runs.imports.formats.base import ImportedRun
    from monitor.runs.imports.targets import Destination

REPORTER = "import"
_STAGE = "compute"  # of a failed run without a duration
_MEASURED_FIELDS = ("seconds", "outcome", "reason", "stages", "metrics", "parameters")


def build_report(
    run: ImportedRun, run_id: uuid.UUID, destination: Destination, probe: str, origin: str
) -> wire.Report:
    """Return the report of *run*, with the id *run_id*, as a run of the series of *destination*.

    *probe* is the name that imported series have in place of a probe. *origin* names the file and the place
    of the run in the file.
    """
    return wire.Report(
        run=run_id,
        series=destination.series.name,
        slot=run.slot,
        reporter=REPORTER,
        probe=wire.ProbeIdentity(probe, "", ""),
        parameters=run.parameters,
        started_at=run.slot,
        seconds=run.seconds,
        outcome=run.outcome,
        reason=run.reason,
        stages=run.stages,
        metrics=[wire.MetricValue(metric.name, metric.value, metric.unit) for metric in run.metrics],
        failure=_failure(run, destination),
        log=[wire.LogLine("info", 0.0, f"imported: {origin}")],
        environment=wire.Environment("", "", ""),
        clock=wire.Clock(run.slot + timedelta(seconds=run.seconds), synchronised=False),
        bindings=destination.bindings,
        usage={},
    )


def _failure(run: ImportedRun, destination: Destination) -> wire.Failure | None:
    """Return the failure of *run* in its only stage; None if it did not fail."""
    if run.outcome not in GRID_FAILURES:
        return None
    stage = run.stages[0].name if run.stages else _STAGE
    measured = [resource for resources in destination.bindings.values() for resource in resources]
    is_named = run.is_resource_at_fault and len(measured) == 1
    return wire.Failure(stage, measured[0] if is_named else None, run.reason)


def encode_report(report: wire.Report) -> bytes:
    """Encode *report* as ``wire.to_json`` does, but without truncation and ten times as fast.

    The depot refuses a report that is too large.
    """
    fields = {name: value for name, value in vars(report).items() if name != "extra"}
    return msgspec.json.encode(fields, order="sorted")


def measured_fields(body: bytes) -> dict[str, object]:
    """Return the fields of an encoded report that contain the measurement."""
    fields = msgspec.json.decode(body)
    return {name: fields.get(name) for name in _MEASURED_FIELDS}
