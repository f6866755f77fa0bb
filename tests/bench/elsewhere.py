"""Predicted I/O times: of MADbench on emulated devices in virtual time, and of applications of TOKIO by IOR.

On the devices a replay makes the calls of a traced run. It is compared with IOR's way: one class of
sequential reads and one of writes.
"""

from __future__ import annotations

import math
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from forecasting.elsewhere.evaluation import evaluate
from forecasting.elsewhere.prediction import predict
from forecasting.elsewhere.runs import IoRun, SystemRuns
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.virtual import VirtualStorage
from tests import realdata
from tests.bench.base import Result
from tests.monitor.testbed.storage.io_virtual import (
    SHARINGS,
    Program,
    Sharing,
    jittered,
    madbench,
    play,
    sequential,
)

REFERENCE = "p690-raid5"
IN_MEMORY = "ram"
SEEDS = 10
PASSES = 3
CONDITIONS = 0.03  # standard deviation of the logarithm of a device's speed, from run to run
LEVEL = 0.9


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-elsewhere-") as scratch:
        return [*_on_devices(build.model_library(Path(scratch))), *_tokio()]


class _Grid:
    """Emulated systems on which runs are played; each run meets other conditions."""

    def __init__(self, library: Path, seed: int) -> None:
        self._library = library
        self._chance = random.Random(seed)

    def run(self, name: str, program: Program, day: int) -> IoRun:
        speed = self._chance.lognormvariate(0.0, CONDITIONS)
        profile = profiles.load(name)
        profile = replace(
            profile,
            seed=self._chance.randrange(1, 1 << 30),
            bytes_per_second=profile.bytes_per_second * speed,
            write_bytes_per_second=profile.write_bytes_per_second * speed,
            controller_bytes_per_second=profile.controller_bytes_per_second * speed,
            capacity_bytes=1 << 30,
        )
        with VirtualStorage(self._library, profile) as storage:
            return play(storage, program, 86_400.0 * day)

    def runs(self, name: str, program: Program, replayed: Callable[[int], Program]) -> SystemRuns:
        """Return *PASSES* runs of *program* with different think times, and as many of what replays make."""
        return SystemRuns(
            name,
            [self.run(name, jittered(program, day), day) for day in range(PASSES)],
            [self.run(name, replayed(day), day) for day in range(PASSES)],
        )


def _on_devices(library: Path) -> Iterator[Result]:
    rows = [row for sharing in SHARINGS for seed in range(SEEDS) for row in _errors(library, sharing, seed)]
    on_devices = [row for row in rows if row[0] != IN_MEMORY]
    replayed = statistics.fmean(abs(replay) for _, replay, _, _ in on_devices)
    by_ior = statistics.fmean(abs(ior) for _, _, ior, _ in on_devices)
    in_memory = statistics.fmean(abs(replay) for name, replay, _, _ in rows if name == IN_MEMORY)
    held = statistics.fmean(is_held for _, _, _, is_held in rows)
    figures = {
        f"mean error on {name}, by a replay": statistics.fmean(abs(row[1]) for row in rows if row[0] == name)
        for name in dict.fromkeys(name for name, *_ in rows)
    }
    figures |= {"by IOR's way": by_ior, "slowest / fastest device": _apart(library), "predictions": len(rows)}
    yield Result("MADbench elsewhere: mean error of totals on devices", replayed, 0.06, "lower", figures)
    yield Result("MADbench elsewhere: mean error of totals in memory", in_memory, 0.2, "lower")
    yield Result("MADbench elsewhere: error / IOR's", replayed / by_ior, 0.5, "lower")
    yield Result("MADbench elsewhere: 90 % intervals hold", held, 0.85, "higher")


def _errors(library: Path, sharing: Sharing, seed: int) -> Iterator[tuple[str, float, float, bool]]:
    """Yield (target, error by a replay, error by IOR, whether the interval holds the actual time)."""
    grid = _Grid(library, seed)
    program, traced = madbench(sharing), jittered(madbench(sharing), seed)
    systems = {name: grid.runs(name, program, lambda _day: traced) for name in profiles.names()}
    by_ior = {name: [grid.run(name, sequential(sharing), day) for day in range(PASSES)] for name in systems}
    reference = systems[REFERENCE]
    for name, target in systems.items():
        if name == REFERENCE:
            continue
        others = [system for other, system in systems.items() if other not in (name, REFERENCE)]
        others = others[: seed % 5]  # from two on, differences between systems are learned from them
        actual = grid.run(name, jittered(program, PASSES), PASSES).seconds
        mean = statistics.fmean([actual, *(run.seconds for run in target.applications)])
        prediction = predict(reference, replace(target, applications=()), others)
        low, high = prediction.quantile((1 - LEVEL) / 2), prediction.quantile((1 + LEVEL) / 2)
        ior = _published_way(reference.applications, by_ior[REFERENCE], by_ior[name])
        yield name, prediction.seconds / mean - 1.0, ior / mean - 1.0, low <= actual <= high


def _published_way(
    applications: Sequence[IoRun], reference: Sequence[IoRun], target: Sequence[IoRun]
) -> float:
    """Return the sum over reads and writes of IOR(target) / IOR(reference) x application(reference)."""
    return math.fsum(
        _mean(target, name) / _mean(reference, name) * _mean(applications, name) for name in ("read", "write")
    )


def _mean(runs: Sequence[IoRun], name: str) -> float:
    return statistics.fmean(run.classes[name].seconds for run in runs)


def _apart(library: Path) -> float:
    grid = _Grid(library, 0)
    names = [name for name in profiles.names() if name != IN_MEMORY]
    seconds = [grid.run(name, madbench(SHARINGS[0]), 0).seconds for name in names]
    return max(seconds) / min(seconds)


def _tokio() -> Iterator[Result]:
    absent = realdata.missing(*realdata.TOKIO)
    if absent:
        print(f"applications of TOKIO are not predicted: {absent}")
        return
    for application, systems in realdata.tokio_io().items():
        pairs = evaluate(systems)
        if application.startswith("hacc"):
            errors = {
                f"{pair.reference} -> {pair.target}": pair.median_error
                for pair in pairs
                if pair.median_error is not None
            }
            worst = (
                max(map(abs, errors.values()), default=math.inf) if len(errors) == len(pairs) else math.inf
            )
            yield Result(f"{application} by IOR: largest median error", worst, 0.2, "lower", errors)
        else:
            refused = sum(pair.refused == "unfaithful" for pair in pairs) / len(pairs)
            yield Result(f"{application} by IOR: refused", refused, 1.0, "higher")
