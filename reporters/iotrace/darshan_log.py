"""Read Darshan logs (the Python package ``darshan``): the calls that DXT recorded, otherwise counters."""

from __future__ import annotations

from pathlib import Path

from reporters.iotrace.calls import BadTrace, IoTrace


def is_log(path: Path) -> bool:
    return path.suffix == ".darshan"


def read(path: Path) -> IoTrace:
    raise BadTrace(f"{path}: not yet")
