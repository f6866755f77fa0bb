"""Traced runs of MADbench, and replays of their calls, whose reports go through ingest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import probes
from monitor.analysis.forecasts import refresh
from monitor.depot.series.segments import current_bindings
from monitor.models import Resource, Run, Series
from probes.base import checked_parameters
from probes.common.signature import FORMAT, VERSION
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.web.pages import builders

MADBENCH = probes.load("madbench")
PARAMETERS: Mapping[str, Any] = {"no_pix": 64, "no_bin": 2}
READ_BYTES, WRITE_BYTES = 2e6, 1e6


@dataclass(frozen=True)
class IoGrid:
    """MADbench ran at *disk* (30 s of input and output), and its replay at *disk* and *flash* (7 s).

    *target* and *far* are MADbench at *flash* and *tape*, where nothing has run. All runs ended before *now*.
    """

    now: datetime
    tape: Resource
    reference: Series
    replay_there: Series
    target: Series
    far: Series


def io_grid(now: datetime) -> IoGrid:
    disk, flash, tape = builders.sites(3)
    reference = madbench("madbench-disk", disk)
    here, there = replay("replay-disk", disk), replay("replay-flash", flash)
    for hours in (3, 2, 1):
        slot = now - timedelta(hours=hours)
        io_run(reference, slot, read=20.0, write=10.0)
        io_run(here, slot, read=20.0, write=10.0)
        io_run(there, slot, read=2.0, write=5.0, queue_seconds=9.0)
    refresh.refresh_all(now)
    target, far = madbench("madbench-flash", flash), madbench("madbench-tape", tape)
    return IoGrid(now, tape, reference, there, target, far)


def signature(**parameters: Any) -> str:
    """Return the signature of MADbench with *parameters*, with what the service reads of it."""
    complete = checked_parameters(MADBENCH, {**PARAMETERS, **parameters})
    application = {"probe": "madbench", "parameters": complete}
    return json.dumps({"format": FORMAT, "version": VERSION, "application": application})


def madbench(name: str, resource: Resource, **fields: Any) -> Series:
    return builders.series(
        name, {"compute": [resource]}, probe="madbench", parameters=dict(PARAMETERS), **fields
    )


def replay(name: str, resource: Resource, text: str | None = None, **fields: Any) -> Series:
    parameters = {"signature": signature() if text is None else text}
    return builders.series(name, {"target": [resource]}, probe="replay", parameters=parameters, **fields)


def io_run(
    series: Series,
    slot: datetime,
    *,
    read: float,
    write: float,
    other_seconds: float = 3.0,
    queue_seconds: float = 1.0,
    outcome: str = "passed",
) -> Run:
    """Ingest a run that reads and writes in so many seconds, waits in a queue, and does something else."""
    io, probe = read + write, probes.load(series.probe)
    stages = (
        wire.StageTiming("queue_wait", "queue", queue_seconds, 0.0),
        wire.StageTiming("compute", "compute", io + other_seconds, queue_seconds),
    )
    metrics = [
        wire.MetricValue("io.seconds", io, "seconds"),
        wire.MetricValue("io.read.seconds", read, "seconds"),
        wire.MetricValue("io.write.seconds", write, "seconds"),
        wire.MetricValue("io.read.bytes", READ_BYTES, "bytes"),
        wire.MetricValue("io.write.bytes", WRITE_BYTES, "bytes"),
        wire.MetricValue("io.think.seconds", other_seconds, "seconds"),
    ]
    seconds = io + other_seconds + queue_seconds
    report = replace(
        circle_report(slot, series=series.name),
        probe=wire.ProbeIdentity(series.probe, probe.version, "ab" * 32),
        parameters=checked_parameters(probe, series.parameters),
        seconds=seconds,
        stages=stages,
        metrics=metrics if outcome == "passed" else (),
        outcome=outcome,
        clock=wire.Clock(slot + timedelta(seconds=seconds), synchronised=True),
        bindings=current_bindings([series.pk])[series.pk],
        usage={},
    )
    return builders.delivered(report)
