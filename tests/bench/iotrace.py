"""The tracer: what it adds to a call, beside strace, and to MADbench; and whether it counts every call."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from reporters.iotrace.records import TraceFile, merge
from reporters.preloaded import preloaded
from tests.bench.base import Result
from tests.probes.kernels import build

CALLS, ROUNDS = 200_000, 9
STRACED_CALLS = 5_000
CALL_LIMIT_SECONDS = 0.3e-6
MATRICES = {"NO_PIX": 2048, "NO_BIN": 8}

# Prints the processor seconds of the calls.
CALLER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    char buffer[8] = "";
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    long calls = atol(argv[2]);
    if (argc != 3 || pwrite(file, buffer, sizeof buffer, 0) < 0)
        return 1;
    double began = now();
    for (long call = 0; call < calls; call++)
        if (pread(file, buffer, sizeof buffer, 0) < 0)
            return 1;
    printf("%.9f\n", now() - began);
    return 0;
}
"""


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-iotrace-") as name:
        directory = Path(name)
        library = preloaded(directory, "iotrace")
        return [_added_to_a_call(directory, library), _added_to_madbench(directory, library)]


def _traced(directory: Path, library: Path) -> dict[str, str]:
    """Return the variables of a traced program, whose parts will be in a new, empty directory."""
    parts = directory / "parts"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    limit = {"GRIDCAST_IOTRACE_BYTES": str(1 << 30)}
    return {**os.environ, "LD_PRELOAD": str(library), "GRIDCAST_IOTRACE": str(parts), **limit}


def _recorded(directory: Path, operation: str) -> int:
    merge(
        sorted((directory / "parts").glob("*.part")),
        directory / "trace",
        {"memory_bytes": 0, "source": "trace"},
    )
    streams = TraceFile(directory / "trace").trace().streams
    return sum(call.operation == operation for stream in streams for call in stream.calls)


def _added_to_a_call(directory: Path, library: Path) -> Result:
    (directory / "caller.c").write_text(CALLER, encoding="ascii")
    caller = directory / "caller"
    subprocess.run(["cc", "-O2", "-o", caller, directory / "caller.c"], check=True)

    def seconds(calls: int, environment: Mapping[str, str] | None = None, *before: str) -> float:
        argv = [*before, str(caller), str(directory / "data"), str(calls)]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout) / calls

    bare, traced = [], []
    for _ in range(ROUNDS):
        bare.append(seconds(CALLS))
        traced.append(seconds(CALLS, _traced(directory, library)))
    added = min(traced) - min(bare)
    figures = {"bare, us": min(bare) * 1e6, "traced, us": min(traced) * 1e6, "added, us": added * 1e6}
    figures["recorded of the calls"] = _recorded(directory, "read") / CALLS
    if shutil.which("strace"):
        log = ["strace", "-f", "-o", str(directory / "log"), "-ttt", "-T", "-y", "-s", "0"]
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds(STRACED_CALLS, None, *log)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        figures["strace, processor us a call"] = spent / STRACED_CALLS * 1e6
    if figures["recorded of the calls"] != 1.0:
        raise RuntimeError(f"not every call is recorded: {figures}")
    return Result("tracer: added to a call / 0.3 us", added / CALL_LIMIT_SECONDS, 1.0, "lower", figures)


def _added_to_madbench(directory: Path, library: Path) -> Result:
    """Compare processor seconds of all three phases: the machine's other work does not count."""
    build(directory, "madbench")
    bare, traced = [], []
    for _ in range(ROUNDS):
        bare.append(_madbench(directory, dict(os.environ)))
        traced.append(_madbench(directory, _traced(directory, library)))
    ratio = min(traced) / min(bare)
    figures = {"bare, processor s": min(bare), "traced": min(traced)}
    figures["writes recorded / made"] = _recorded(directory, "write") / (2 * MATRICES["NO_BIN"])
    return Result("tracer: MADbench traced / bare", ratio, 1.01, "lower", figures)


def _madbench(directory: Path, environment: Mapping[str, str]) -> float:
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    for phase in "SWC":
        sizes = [str(number) for number in MATRICES.values()]
        words = [phase, "matrices", "own", *sizes, "0", "1", "1.0", "readers", "writers"]
        subprocess.run(
            [directory / "madbench", *words],
            cwd=directory,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
