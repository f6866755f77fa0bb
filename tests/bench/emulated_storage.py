"""Emulated storage: its real times against its model, and its model against published times."""

from __future__ import annotations

import mmap
import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from monitor.testbed.storage.profile import KIB, MIB
from monitor.testbed.storage.published import TABLES, virtual_values
from monitor.testbed.storage.virtual import VirtualStorage
from tests.bench.base import Result, seconds

CALL_BYTES, FILE_BYTES = 128 * KIB, 16 * MIB
RANDOM_BYTES, RANDOM_CALLS = 4 * KIB, 150
PART, ABSOLUTE_SECONDS = 0.05, 1e-3  # how much real time may differ from the model's, for each request
Durations = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Request:
    offset: int
    size: int
    is_write: bool


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-storage-") as scratch:
        return [*_published(Path(scratch)), *_real(Path(scratch))]


def _published(scratch: Path) -> Iterator[Result]:
    library = build.model_library(scratch)
    for name, table in TABLES.items():
        found = virtual_values(name, library)
        errors = {setting: abs(found[setting] / table.values[setting] - 1.0) for setting in found}
        unit = "/ the best" if table.relative_to else "s"
        figures = {
            f"{writers} writers, {readers} readers, {unit}": value
            for (writers, readers), value in found.items()
        }
        yield Result(
            f"{name}: largest error of published times", max(errors.values()), 0.15, "lower", figures
        )
        published_best = min(table.values, key=table.values.__getitem__)
        ratio = found[published_best] / min(found.values())
        yield Result(f"{name}: time with the published best streams / the best", ratio, 1.0, "lower")


def _real(scratch: Path) -> Iterator[Result]:
    try:
        emulator = build.emulator(scratch)
    except MissingProgram as error:
        print(f"emulated storage is not measured: {error}")
        return
    directory = scratch / "device"
    directory.mkdir()
    for name in profiles.names():
        with mounted(emulator, directory, profiles.load(name)):
            real = {
                stream: _real_seconds(directory / "file", requests) for stream, requests in _streams().items()
            }
        yield from _compared(name, real, _model_seconds(scratch, name))


def _streams() -> Mapping[str, Sequence[Request]]:
    """Return sequential requests that write and read a file, then random ones, in this order."""
    chance = random.Random(1)
    offsets = [RANDOM_BYTES * chance.randrange(FILE_BYTES // RANDOM_BYTES) for _ in range(RANDOM_CALLS)]
    return {
        f"{pattern} {'writes' if is_write else 'reads'}": [
            Request(offset, size, is_write) for offset in places
        ]
        for pattern, size, places in (
            ("sequential", CALL_BYTES, range(0, FILE_BYTES, CALL_BYTES)),
            ("random", RANDOM_BYTES, offsets),
        )
        for is_write in (True, False)
    }


def _real_seconds(file: Path, requests: Sequence[Request]) -> list[float]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    buffer = mmap.mmap(-1, CALL_BYTES)  # aligned, as direct calls need it
    try:
        return [
            seconds(
                partial(
                    os.pwritev if request.is_write else os.preadv,
                    descriptor,
                    [memoryview(buffer)[: request.size]],
                    request.offset,
                )
            )
            for request in requests
        ]
    finally:
        os.close(descriptor)


def _model_seconds(scratch: Path, name: str) -> Durations:
    end = 0.0
    found: dict[str, list[float]] = {}
    with VirtualStorage(build.model_library(scratch), profiles.load(name)) as storage:
        for stream, requests in _streams().items():
            found[stream] = []
            for request in requests:
                arrival = end
                end = storage.serve(
                    1, request.offset, request.size, is_write=request.is_write, arrival_seconds=arrival
                )
                found[stream].append(end - arrival)
    return found


def _compared(name: str, real: Durations, model: Durations) -> Iterator[Result]:
    """Compare the mean request of each stream, and each request."""
    means = {stream: (fmean(real[stream]), fmean(model[stream])) for stream in model}
    figures = {}
    for stream, (real_mean, model_mean) in means.items():
        figures[f"{stream}, ms a request"] = 1e3 * real_mean
        figures[f"{stream} by the model, ms"] = 1e3 * model_mean
    worst = max(_difference(*pair) for pair in means.values())
    yield Result(f"{name}: |real - model| / (5 % + 1 ms), mean requests", worst, 1.0, "lower", figures)
    single = [
        _difference(*pair) for stream in model for pair in zip(real[stream], model[stream], strict=True)
    ]
    share = sum(difference > 1.0 for difference in single) / len(single)
    yield Result(f"{name}: share of requests off by more than 5 % + 1 ms", share, 0.01, "lower")


def _difference(real_seconds: float, model_seconds: float) -> float:
    return abs(real_seconds - model_seconds) / (PART * model_seconds + ABSOLUTE_SECONDS)
