"""Emulated storage: its real times against its model, and its model against published times."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from monitor.testbed.storage.profile import KIB, MIB
from monitor.testbed.storage.published import TABLES, virtual_seconds
from monitor.testbed.storage.virtual import VirtualStorage
from tests.bench.base import Result, seconds

CALL_BYTES = 128 * KIB
FILE_BYTES = 48 * MIB


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-storage-") as scratch:
        return [*_published(Path(scratch)), *_real(Path(scratch))]


def _published(scratch: Path) -> Iterator[Result]:
    library = build.model_library(scratch)
    for name, table in TABLES.items():
        found = virtual_seconds(name, library)
        errors = {setting: abs(found[setting] / table.seconds[setting] - 1.0) for setting in found}
        yield Result(
            f"{name}: largest error of published times",
            max(errors.values()),
            0.15,
            "lower",
            {
                f"{writers} writers, {readers} readers, s": found[writers, readers]
                for writers, readers in found
            },
        )


def _real(scratch: Path) -> Iterator[Result]:
    try:
        emulator = build.emulator(scratch)
    except MissingProgram as error:
        print(f"emulated storage is not measured: {error}")
        return
    directory = scratch / "device"
    directory.mkdir()
    for name in ("flash", "xeon-eide"):
        with mounted(emulator, directory, profiles.load(name)):
            file = directory / "file"
            written = seconds(partial(_calls, file, is_write=True))
            read = seconds(partial(_calls, file, is_write=False))
        model = _model_seconds(scratch, name)
        yield Result(
            f"{name}: real time / the model's",
            (written + read) / sum(model),
            1.05,
            "lower",
            {
                "written, s": written,
                "read, s": read,
                "written by the model, s": model[0],
                "read by the model, s": model[1],
            },
        )


def _calls(file: Path, *, is_write: bool) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    buffer = mmap.mmap(-1, CALL_BYTES)  # aligned, as direct calls need it
    try:
        for offset in range(0, FILE_BYTES, CALL_BYTES):
            if is_write:
                os.pwritev(descriptor, [buffer], offset)
            else:
                os.preadv(descriptor, [buffer], offset)
    finally:
        os.close(descriptor)


def _model_seconds(scratch: Path, name: str) -> tuple[float, float]:
    ends = [0.0]
    with VirtualStorage(build.model_library(scratch), profiles.load(name)) as storage:
        for is_write in (True, False):
            end = ends[-1]
            for offset in range(0, FILE_BYTES, CALL_BYTES):
                end = storage.serve(1, offset, CALL_BYTES, is_write=is_write, arrival_seconds=end)
            ends.append(end)
    return ends[1], ends[2] - ends[1]
