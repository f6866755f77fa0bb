"""I/O times elsewhere: MADbench, traced on an emulated RAID, is predicted on other devices by its replay.

The prediction is the sum over classes of the replay's time there, over that at the reference, times the
application's time at the reference. Published for a replay by IOR: a mean error of 23.87 %.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from probes.common.io_classes import IO_CLASSES
from tests.bench.base import Result

ROOT = Path(__file__).resolve().parents[2]
REFERENCE, TARGETS = "p690-raid5", ("p690-scsi", "xeon-eide", "flash")
RUNS = 3
MADBENCH = {"no_pix": 1024, "no_bin": 12, "tasks": 4}  # seconds of I/O on the fastest device
METHODS: Mapping[str, Mapping[str, object]] = {
    "POSIX, own files": {},
    "one shared file": {"sharing": "shared"},
}

Seconds = Mapping[str, float]  # of each class


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-replay-") as name:
        scratch = Path(name)
        try:
            emulator = build.emulator(scratch / "cache")
        except MissingProgram as error:
            print(f"replays are not measured: {error}")
            return []
        return [result for method in METHODS for result in _of_method(scratch, emulator, method)]


def _of_method(scratch: Path, emulator: Path, method: str) -> Iterator[Result]:
    parameters = {**MADBENCH, **METHODS[method]}
    directory, trace = scratch / "device", scratch / "trace"
    directory.mkdir(exist_ok=True)
    with mounted(emulator, directory, profiles.load(REFERENCE)):
        signature = _signature(directory, trace, parameters)
        application, replay = _both(directory, parameters, signature)
    errors: list[float] = []
    # Beside other work, this ratio is not 1: then the errors show the machine, not the method.
    figures = {
        f"{REFERENCE}: replay there / application there": sum(replay.values()) / sum(application.values())
    }
    for target in TARGETS:
        with mounted(emulator, directory, profiles.load(target)):
            there, replayed = _both(directory, parameters, signature)
        predicted = sum(
            application[name] * replayed[name] / replay[name] for name in IO_CLASSES if replay.get(name)
        )
        actual = sum(there.get(name, 0.0) for name in IO_CLASSES)
        errors.append(predicted / actual - 1.0)
        figures |= {
            f"{target}: application, s": actual,
            f"{target}: replay there / application there": sum(replayed.values()) / actual,
            f"{target}: error, %": 100.0 * errors[-1],
        }
    yield Result(
        f"replay, {method}: mean error of totals", statistics.mean(map(abs, errors)), 0.06, "lower", figures
    )


def _signature(directory: Path, trace: Path, parameters: Mapping[str, object]) -> str:
    traced = ["iotrace", "run", "-o", str(trace), "--area", str(directory), "--only", "madbench", "--"]
    _reporter(*traced, sys.executable, "-m", "reporters", *_once("madbench", directory, parameters))
    return _reporter("iotrace", "signature", str(trace))


def _both(directory: Path, parameters: Mapping[str, object], signature: str) -> tuple[Seconds, Seconds]:
    """Return the median seconds of the application and of the replay, which run in turns."""
    runs: list[tuple[Seconds, Seconds]] = [
        (
            _run("madbench", directory, {**parameters, "trace": "true"}),
            _run("replay", directory, {"signature": signature}),
        )
        for _ in range(RUNS)
    ]
    names = [name for name in IO_CLASSES if name in runs[0][0]]
    application, replay = (
        {name: statistics.median(pair[part].get(name, 0.0) for pair in runs) for name in names}
        for part in (0, 1)
    )
    return application, replay


def _run(probe: str, directory: Path, parameters: Mapping[str, object]) -> Seconds:
    report = json.loads(_reporter(*_once(probe, directory, parameters), "--json"))
    if report["outcome"] != "passed":
        raise RuntimeError(report["reason"])
    values = {metric["name"]: metric["value"] for metric in report["metrics"]}
    return {name: values[f"io.{name}.seconds"] for name in IO_CLASSES if f"io.{name}.seconds" in values}


def _once(probe: str, directory: Path, parameters: Mapping[str, object]) -> list[str]:
    settings = [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
    return ["once", probe, "--scratch", str(directory), *settings]


def _reporter(*arguments: str) -> str:
    command = [sys.executable, "-m", "reporters", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)[:200]}: {done.stderr or done.stdout[-500:]}")
    return done.stdout
