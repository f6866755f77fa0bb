"""Running a program under a guardian that leaves nothing alive, against bare ``subprocess``."""

from __future__ import annotations

import subprocess

from reporters import process
from tests.bench.base import Result, interleaved

TIMES = 60


def measure() -> list[Result]:
    ours, bare = interleaved(
        lambda: process.run(["sleep", "0.1"], timeout_seconds=10.0),
        lambda: subprocess.run(["sleep", "0.1"], check=True, capture_output=True, timeout=10.0),
        TIMES,
    )
    return [
        Result(
            name="sleep 0.1 under a guardian / subprocess",
            ratio=ours / bare,
            target=1.2,
            better="lower",
            figures={"guarded, ms": ours * 1000, "bare, ms": bare * 1000},
        )
    ]
