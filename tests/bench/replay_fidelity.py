"""I/O times elsewhere, in real time: MADbench on emulated devices is predicted by replays, and by IOR's way.

MADbench is traced once on a RAID. A replay of that trace runs on each device, in turns with MADbench, whose
times it predicts. IOR's way is published (mean error 23.87 %): one class of sequential reads, one of writes.
Its calls are played here by the same program, so that only the calls differ.

Other work on the machine shows in the results: figures count on an idle machine. All runs are written to
``var/replay_fidelity.csv``, for ``python -m forecasting elsewhere``.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forecasting.elsewhere.abstained import NoPrediction
from forecasting.elsewhere.prediction import predict
from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns
from monitor.core.csvfile import to_csv
from monitor.core.env import make_var_directory
from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from probes.common import signature
from probes.common.io_classes import IO_CLASSES
from tests.bench.base import Result
from tests.probes.runs import run_locally

ROOT = Path(__file__).resolve().parents[2]
REFERENCE, IN_MEMORY = "p690-raid5", "ram"
# The more rounds, the less the interleaving of tasks counts; fast devices have time for more of them.
ROUNDS = {
    REFERENCE: 5,
    "xeon-eide": 2,
    "p690-scsi": 4,
    "beowulf-raid5": 3,
    "flash": 4,
    "flash-raid0-16": 5,
    IN_MEMORY: 5,
}
TARGETS = tuple(name for name in ROUNDS if name != REFERENCE)
LEVEL = 0.9
PIXELS, BINS, TASKS = 640, 5, 4
PART_BYTES = 8 * PIXELS * PIXELS // TASKS
POSIX_OWN, POSIX_SHARED, MPI_IO = "POSIX, own files", "POSIX, one shared file", "MPI-IO, one shared file"
METHODS: Mapping[str, Mapping[str, object]] = {
    POSIX_OWN: {},
    POSIX_SHARED: {"sharing": "shared"},
    MPI_IO: {"sharing": "shared", "io_method": "mpiio"},
}
DROP = 4  # POSIX_FADV_DONTNEED
CREATED, FOR_READING, FOR_WRITING = 1, 16, 32


@dataclass(frozen=True)
class Prediction:
    """What was predicted for *target*. Errors are relative; *held* is of the runs there."""

    target: str
    actual: float
    error: float
    ior_error: float
    fidelity: float
    held: Sequence[bool]
    is_refused: bool  # as unfaithful on another system


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-replay-") as name:
        scratch = Path(name)
        try:
            emulator = build.emulator(scratch / "cache")
        except MissingProgram as error:
            print(f"replays are not measured: {error}")
            return []
        measured = {method: _runs(scratch, emulator, method) for method in _methods()}
    (make_var_directory(ROOT / "var") / "replay_fidelity.csv").write_text(_csv(measured), encoding="utf-8")
    return [
        *_results(
            {method: [_predicted(target, *runs) for target in TARGETS] for method, runs in measured.items()}
        )
    ]


def _methods() -> list[str]:
    if shutil.which("mpicc") and shutil.which("mpirun"):
        return [*METHODS]
    print("MPI-IO is not measured: mpicc or mpirun is not installed (Debian: mpich, libmpich-dev)")
    return [POSIX_OWN, POSIX_SHARED]


def _results(predictions: Mapping[str, Sequence[Prediction]]) -> Iterator[Result]:
    every = [each for part in predictions.values() for each in part]
    on_devices = [each for each in every if each.target != IN_MEMORY]
    actual = [each.actual for each in every]
    figures = {
        f"{method}, {each.target}: {what}": value
        for method, part in predictions.items()
        for each in part
        for what, value in (
            ("MADbench, s", each.actual),
            ("replay / MADbench", each.fidelity),
            ("error, %", 100.0 * each.error),
            ("error by IOR's way, %", 100.0 * each.ior_error),
        )
    }
    figures |= {
        "slowest / fastest target": max(actual) / min(actual),
        "refused": sum(each.is_refused for each in every),
    }
    error = _mean_error([each.error for each in on_devices])
    by_ior = _mean_error([each.ior_error for each in on_devices])
    in_memory = _mean_error([each.error for each in every if each.target == IN_MEMORY])
    held = statistics.fmean(is_held for each in every for is_held in each.held)
    yield Result("replays: mean error of totals on devices", error, 0.06, "lower", figures)
    yield Result("replays: mean error of totals in memory", in_memory, 0.2, "lower")
    yield Result("replays: error / IOR's", error / by_ior, 0.5, "lower", {"IOR's mean error": by_ior})
    yield Result("replays: 90 % intervals hold", held, 0.85, "higher")


def _mean_error(errors: Sequence[float]) -> float:
    return statistics.fmean(map(abs, errors))


def _csv(measured: Mapping[str, tuple[Mapping[str, SystemRuns], Mapping[str, Sequence[IoRun]]]]) -> str:
    """Return all runs; IOR's calls are replays of a workload of their own."""
    workloads = {
        **{method: systems for method, (systems, _) in measured.items()},
        **{
            f"{method}, by IOR": {
                name: replace(system, replays=sequential[name]) for name, system in systems.items()
            }
            for method, (systems, sequential) in measured.items()
        },
    }
    heading = ("system", "workload", "kind", "class", "started_at", "seconds", "bytes")
    rows = [
        (name, workload, kind, class_name, _at(run), time.seconds, time.moved_bytes)
        for workload, systems in workloads.items()
        for name, system in systems.items()
        for kind, runs in (("application", system.applications), ("replay", system.replays))
        for run in runs
        for class_name, time in run.classes.items()
    ]
    return to_csv([heading, *rows])


def _at(run: IoRun) -> str:
    return datetime.fromtimestamp(run.started_at_seconds, UTC).isoformat()


def _runs(
    scratch: Path, emulator: Path, method: str
) -> tuple[Mapping[str, SystemRuns], Mapping[str, Sequence[IoRun]]]:
    """Return the runs of MADbench and its replay on each device, and those of IOR's calls."""
    directory = scratch / "device"
    directory.mkdir(exist_ok=True)
    parameters = {"no_pix": PIXELS, "no_bin": BINS, "tasks": TASKS, **METHODS[method]}
    replayed, by_ior = "", _ior(is_shared="sharing" in parameters)
    systems: dict[str, SystemRuns] = {}
    sequential: dict[str, list[IoRun]] = {}
    for name, rounds in ROUNDS.items():
        with mounted(emulator, directory, profiles.load(name)):
            replayed = replayed or _signature(directory, scratch / "trace", parameters)
            runs = [_round(directory, parameters, replayed, by_ior) for _ in range(rounds)]
        applications, replays, sequential[name] = (list(part) for part in zip(*runs, strict=True))
        systems[name] = SystemRuns(name, applications, replays)
    return systems, sequential


def _predicted(
    target: str, systems: Mapping[str, SystemRuns], sequential: Mapping[str, Sequence[IoRun]]
) -> Prediction:
    reference, there = systems[REFERENCE], systems[target]
    others = [system for name, system in systems.items() if name not in (REFERENCE, target)]
    actual = statistics.fmean(run.seconds for run in there.applications)
    is_refused = False
    try:
        prediction = predict(reference, replace(there, applications=()), others)
    except NoPrediction as error:
        print(f"{target}: {error}")
        prediction = predict(reference, replace(there, applications=()))
        is_refused = True
    low, high = prediction.quantile((1 - LEVEL) / 2), prediction.quantile((1 + LEVEL) / 2)
    ior = math.fsum(
        _median(sequential[target], name)
        / _median(sequential[REFERENCE], name)
        * _median(reference.applications, name)
        for name in ("read", "write")
    )
    return Prediction(
        target,
        actual,
        prediction.seconds / actual - 1.0,
        ior / actual - 1.0,
        statistics.median(run.seconds for run in there.replays) / actual,
        [low <= run.seconds <= high for run in there.applications],
        is_refused,
    )


def _median(runs: Sequence[IoRun], name: str) -> float:
    return statistics.median(run.classes[name].seconds for run in runs)


# ---- runs ----


def _signature(directory: Path, trace: Path, parameters: Mapping[str, object]) -> str:
    traced = ["iotrace", "run", "-o", str(trace), "--area", str(directory), "--only", "madbench", "--"]
    settings = [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
    once = [sys.executable, "-m", "reporters", "once", "madbench", "--scratch", str(directory), *settings]
    _reporter(*traced, *once)
    return _reporter("iotrace", "signature", str(trace))


def _reporter(*arguments: str) -> str:
    command = [sys.executable, "-m", "reporters", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)[:200]}: {done.stderr or done.stdout[-500:]}")
    return done.stdout


def _round(
    directory: Path, parameters: Mapping[str, object], replayed: str, by_ior: str
) -> tuple[IoRun, IoRun, IoRun]:
    """Run MADbench, its replay and IOR's calls, so that all meet the same conditions."""
    return (
        _run("madbench", "compute", directory, {**parameters, "trace": True}),
        _run("replay", "target", directory, {"signature": replayed}),
        _run("replay", "target", directory, {"signature": by_ior}),
    )


def _run(probe: str, role: str, directory: Path, parameters: Mapping[str, object]) -> IoRun:
    began = time.time()
    report = run_locally(probe, directory, parameters, role)
    if report.outcome != "passed":
        raise RuntimeError(f"{probe}: {report.reason}")
    values = {metric.name: metric.value for metric in report.metrics}
    return IoRun(
        began,
        {
            name: IoTime(values[f"io.{name}.seconds"], values.get(f"io.{name}.bytes"))
            for name in IO_CLASSES
            if f"io.{name}.seconds" in values
        },
    )


def _ior(*, is_shared: bool) -> str:
    """Return the signature of IOR's calls: all tasks write all their parts, then read them."""
    step = [0, PART_BYTES * (TASKS if is_shared else 1)]
    moving = {"file": 0, "size": PART_BYTES, "at": step} | ({"by_task": PART_BYTES} if is_shared else {})
    body: list[dict[str, Any]] = [
        {"op": "open", "file": 0, "flags": CREATED | FOR_READING | FOR_WRITING},
        {"times": BINS, "body": [{"op": "write", **moving}]},
        {"op": "fsync", "file": 0},
        {"op": "advise", "file": 0, "flags": DROP},
        {"op": "barrier"},
        {"times": BINS, "body": [{"op": "read", **moving}]},
        {"op": "close", "file": 0},
    ]
    moved = PART_BYTES * TASKS * BINS
    family = {
        "name": "f0",
        "count": 1 if is_shared else TASKS,
        "initial_bytes": 0,
        "final_bytes": moved if is_shared else moved // TASKS,
        "cached": 0.0,
        "direct": False,
        "tasks": TASKS if is_shared else 1,
    }
    return signature.write(
        {
            **json.loads(_EMPTY),
            "tasks": TASKS,
            "bytes": {"read": moved, "write": moved},
            "files": [family],
            "programs": [{"tasks": [0, TASKS], "files": [[0, int(not is_shared), 1, 0]], "body": body}],
        }
    )


_EMPTY = (
    '{"format":"gridcast-io-signature","version":1,"source":"trace","application":null,'
    '"calls":{"read":0,"write":0,"sync":0,"metadata":0},"approximated":0.0,"phases":[],'
    '"seconds":{"read":0,"write":0,"sync":0,"metadata":0,"wait":0,"think":0}}'
)
