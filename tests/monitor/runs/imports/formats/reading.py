"""Helpers that read data with importers, and the paths of the real data that some tests need."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from monitor.runs.imports import formats
from monitor.runs.imports.formats.base import ImportedRun, Item, MalformedRecord, SkippedRecord
from monitor.runs.imports.formats.opening import open_input

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).resolve().parents[6] / "shared" / "data"

LANL = "lanl-failures/LA-UR-05-7318-failure-data-1996-2005.csv.gz"
AZURE = "azure-vm-noise/azure-vm-noise-eastus.tar.gz"
# Options to import them: outages of nodes, and benchmarks of virtual machines.
OUTAGES = {
    "time_column": "Prob Started",
    "end_column": "Prob Fixed",
    "time_format": "%m/%d/%Y %H:%M",
    "timezone": "America/Denver",
    "value_columns": "",
    "series_column": "System,nodenum",
    "outcome": "failed",
    "reason_columns": "Facilities,Hardware,Human Error,Network,Undetermined,Software",
    "apart": "yes",
}
MACHINES = {"time_column": "starttime", "seconds_column": "runtime", "series_column": "VM_id"}

needs_shared_data = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the real data (../shared/data beside the checkout) are not on this machine"
)


def read(kind: str, data: str | bytes, **options: str) -> list[Item]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(formats.create_importer(kind, options).read(stream))


def runs(items: list[Item]) -> list[ImportedRun]:
    return [item for item in items if isinstance(item, ImportedRun)]


def refused(items: list[Item]) -> list[str]:
    return [str(item) for item in items if isinstance(item, MalformedRecord)]


def skipped(items: list[Item]) -> list[str]:
    return [item.reason for item in items if isinstance(item, SkippedRecord)]


def read_shared(kind: str, name: str, *, most: int | None = None, **options: str) -> list[Item]:
    """Read at *most* so many items of a file of the real data."""
    with open_input(str(SHARED / name), sys.stdin.buffer) as stream:
        return list(islice(formats.create_importer(kind, options).read(stream), most))


def lines_of(name: str, wanted: Callable[[str], bool] = bool, *, most: int | None = None) -> list[str]:
    """Return lines of a file of the real data, read without the code under test."""
    with gzip.open(SHARED / name, "rt") as lines:
        return list(islice(filter(wanted, lines), most))


def member(archive: str, beginning: str, part: str) -> bytes:
    """Return the first member of a tar archive whose name starts with *beginning* and contains *part*."""
    with tarfile.open(SHARED / archive) as tar:
        for entry in tar:
            if entry.name.startswith(beginning) and part in entry.name and (file := tar.extractfile(entry)):
                return file.read()
    raise FileNotFoundError(f"{archive} has no {beginning}...{part}")


def metrics(run: ImportedRun) -> dict[str, tuple[float, str]]:
    return {metric.name: (metric.value, metric.unit) for metric in run.metrics}
