"""The report of a run that was imported: as a reporter would have sent it when it had ended."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from reporters import report as wire

if TYPE_CHECKING:
    import uuid

    from monitor.imports.formats.base import Measured
    from monitor.imports.targets import Destination

REPORTER = "import"
_MEASURED = ("seconds", "outcome", "reason", "stages", "metrics", "parameters")


def report_of(one: Measured, run: uuid.UUID, to: Destination, probe: str, origin: str) -> wire.Report:
    """Of *one*, which is *run* of *to*; *origin* says where it was read."""
    return wire.Report(
        run=run,
        series=to.series.name,
        slot=one.slot,
        reporter=REPORTER,
        probe=wire.ProbeIdentity(probe, "", ""),
        parameters=one.parameters,
        started_at=one.slot,
        seconds=one.seconds,
        outcome=one.outcome,
        reason=one.reason,
        stages=one.stages,
        metrics=[wire.MetricValue(metric.name, metric.value, metric.unit) for metric in one.metrics],
        failure=None,
        log=[wire.LogLine("info", 0.0, f"imported: {origin}")],
        environment=wire.Environment("", "", ""),
        clock=wire.Clock(one.slot + timedelta(seconds=one.seconds), synchronised=False),
        bindings=to.bindings,
        usage={},
    )


def written(report: wire.Report) -> bytes:
    """As ``wire.to_json`` writes it, ten times as fast: nothing is cut, what the depot cannot hold it
    refuses."""
    said = {name: value for name, value in vars(report).items() if name != "extra"}
    return msgspec.json.encode(said, order="sorted")


def measured(body: bytes) -> dict[str, object]:
    """What a report says of what was measured."""
    told = msgspec.json.decode(body)
    return {name: told.get(name) for name in _MEASURED}
