"""A run of a storage sweep with its usual duration of a measurement: which share of its time measures?"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from reporters.config import Assignment, ResourceConfig
from reporters.run import run
from tests.bench.base import Result

EIGHT = {"request_bytes": "4096,1048576", "pattern": "sequential,random", "queue_depth": "4"}


def measure() -> list[Result]:
    tools = ["own", *(["fio"] if shutil.which("fio") else [])]
    if len(tools) == 1:
        print("sweeps by fio are not measured: fio is not installed (Debian: fio)")
    return [_share(tool) for tool in tools]


def _share(tool: str) -> Result:
    with tempfile.TemporaryDirectory(prefix="gridcast-sweep-") as scratch:
        report = run(
            Assignment(
                series="bench",
                slot=datetime.now(UTC),
                reporter="here",
                probe="storage_sweep",
                bindings={"target": ["here"]},
                resources={"here": ResourceConfig("here", "here", str(Path(scratch).resolve()))},
                parameters={**EIGHT, "tool": tool},
            )
        )
    if report.outcome != "passed":
        raise RuntimeError(report.reason)
    values = {metric.name: metric.value for metric in report.metrics}
    stages = {f"{stage.name}, s": stage.seconds for stage in report.stages}
    share = values["sweep.measuring.share"]
    return Result(f"sweep by {tool}: share of its time that measures", share, 0.9, "higher", stages)
