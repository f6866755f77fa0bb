"""Tokens on emulated storage: unchanged programs with and without them, and tokens inside the application."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from forecasting.reading.sweeps import StreamRow
from forecasting.sweeps.sweet_spot import sweet_spot
from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from monitor.testbed.storage.profile import MIB
from probes.common.kernels import kernel_source
from probes.streams import parse_streams
from reporters.compiled import compiled
from reporters.tokens.server import status
from tests.bench.base import Result, seconds
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
TASKS = 16
READERS = {"p690-raid5": 4, "p690-scsi": 1}  # the published best
FILE_BYTES, SHORT_FILE_BYTES = 24 * MIB, 3 * MIB  # short: sixteen readers of one disk are slow
ROUNDS = 3
Environment = Mapping[str, str]
HOLDS = """
import os, sys, time
os.pread(os.open(sys.argv[1], os.O_RDONLY), 4096, 0)
print(flush=True)
time.sleep(600)
"""
FLASH_BYTES, FLASH_PASSES = 4 * MIB, 4


@dataclass(frozen=True)
class StorageArea:
    """An emulated device at *directory*; *scratch* has programs and sockets, *files* is what tasks read."""

    profile: str
    directory: Path
    scratch: Path
    file_bytes: int = FILE_BYTES

    @property
    def readers(self) -> int:
        return READERS[self.profile]

    @property
    def files(self) -> list[Path]:
        return [self.directory / f"file.{number}" for number in range(TASKS)]


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="gridcast-tokens-") as scratch:
        try:
            build.emulator(Path(scratch))
        except MissingProgram as error:
            print(f"tokens are not measured: {error}")
            return []
        with area(Path(scratch), "p690-raid5") as raid:
            inside = _inside(raid)
            write_files(raid)
            results = [inside, _cost(raid), _handover(raid), *_programs(raid)]
        with area(Path(scratch), "p690-scsi") as disk:
            results.append(_inside(replace(disk, file_bytes=SHORT_FILE_BYTES)))
            write_files(disk, disk.readers)
            results.append(_cost(disk))
        with area(Path(scratch), "flash") as flash:
            return [*results, _flash(flash)]


@contextlib.contextmanager
def area(scratch: Path, profile: str) -> Iterator[StorageArea]:
    directory = scratch / profile
    directory.mkdir()
    with mounted(build.emulator(scratch), directory, profiles.load(profile)):
        yield StorageArea(profile, directory, scratch)


@contextlib.contextmanager
def limited(area: StorageArea, *options: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """Serve tokens; yield the run of a program that prints the environment which ``tokens run`` gives it.

    A job starts once under ``tokens run``; its programs inherit the environment.
    """
    command, socket = [sys.executable, "-m", "reporters", "tokens"], str(area.scratch / "socket")
    serve = [*command, "serve", str(area.directory), "--socket", socket, *options]
    with subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        server.stdout.readline()
        run = [*command, "run", "--socket", socket, "--", "env"]
        try:
            yield subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
        finally:
            server.terminate()


def environment(run: subprocess.CompletedProcess[str]) -> Environment:
    variables = (line.partition("=") for line in run.stdout.splitlines())
    added = {name: value for name, _, value in variables if name.startswith(("LD_PRELOAD", "GRIDCAST_"))}
    return {**os.environ, **added}


def tokens(number: int) -> tuple[str, ...]:
    return ("--readers", str(number), "--writers", str(number))


def write_files(area: StorageArea, count: int = TASKS) -> None:
    block = os.urandom(MIB)
    for file in area.files[:count]:
        with file.open("wb") as stream:
            stream.writelines(block for _ in range(area.file_bytes // MIB))


def drop_from_cache(files: Sequence[Path]) -> None:
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def compared(area: StorageArea, work: Callable[[Environment], object], number: int) -> tuple[float, float]:
    """Return the median seconds of *work* in an environment without limits, and with *number* tokens."""
    free: list[float] = []
    held: list[float] = []
    with limited(area, *tokens(number)) as run:
        for _ in range(ROUNDS):
            for found, variables in ((free, dict(os.environ)), (held, environment(run))):
                drop_from_cache([file for file in area.directory.iterdir() if file.is_file()])
                found.append(seconds(partial(work, variables)))
    return statistics.median(free), statistics.median(held)


def together(commands: Sequence[Sequence[str]], variables: Environment) -> float:
    """Run all *commands* at once; return the processor seconds of all. Raises RuntimeError if one fails."""
    running = [subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) for command in commands]
    cpu_seconds = 0.0
    for process in running:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_seconds += used.ru_utime + used.ru_stime
    if any(process.returncode for process in running):
        raise RuntimeError(f"a program failed: {commands[0]}")
    return cpu_seconds


def _kernel(area: StorageArea) -> str:
    texts = {"streams.c": kernel_source("streams"), "checked.h": kernel_source("checked", suffix=".h")}
    return str(compiled(area.scratch, "streams", texts, ("-std=gnu99", "-lpthread", "-lm")))


def _inside(area: StorageArea) -> Result:
    """Compare tokens that the application counts itself with those of the library."""
    program = _kernel(area)

    def reads(readers: int, variables: Environment) -> float:
        sizes = [TASKS, 1, area.file_bytes, 65536, 0, readers, 1, 0]
        command = [program, str(area.directory / "stream"), *map(str, sizes)]
        text = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
        _, phases = parse_streams(text, "here")
        return phases["read"].seconds + phases["reread"].seconds

    inside, library = [], []
    with limited(area, *tokens(area.readers)) as run:
        for _ in range(ROUNDS):
            inside.append(reads(area.readers, dict(os.environ)))
            library.append(reads(TASKS, environment(run)))
    figures = {"inside, s": statistics.median(inside), "library, s": statistics.median(library)}
    ratio = figures["inside, s"] / figures["library, s"]
    return Result(f"tokens on {area.profile}: rate of the library / inside", ratio, 0.9, "higher", figures)


def _cost(area: StorageArea) -> Result:
    """Compare readers that all have a token with readers without limits, by processor time."""
    files, free, held, took = area.files[: area.readers], [], [], []
    with limited(area, *tokens(area.readers)) as run:
        for _ in range(3 * ROUNDS):
            drop_from_cache(files)
            began = time.perf_counter()
            free.append(_dd(files, dict(os.environ)))
            took.append(area.readers * (time.perf_counter() - began))
            drop_from_cache(files)
            held.append(_dd(files, environment(run)))
    added = statistics.median(held) - statistics.median(free)
    figures = {
        "processor, s": statistics.median(free),
        "added, s": added,
        "time of all, s": statistics.median(took),
    }
    ratio = added / figures["time of all, s"]
    return Result(
        f"tokens that suffice on {area.profile}: processor time added / time", ratio, 0.01, "lower", figures
    )


def _handover(area: StorageArea) -> Result:
    """Kill the holder of the only token while another program waits for it."""
    held, waited = area.files[:2]
    took = []
    with limited(area, *tokens(1)) as run:
        forever = {"GRIDCAST_TOKENS_LINGER": "1000", "GRIDCAST_TOKENS_QUANTUM": str(1 << 40)}
        variables = {**environment(run), **forever}
        for _ in range(ROUNDS):
            holds = [sys.executable, "-c", HOLDS, str(held)]
            holder = subprocess.Popen(holds, env=variables, stdout=subprocess.PIPE)
            assert holder.stdout
            holder.stdout.readline()
            argv = ["dd", f"if={waited}", "of=/dev/null", "bs=4k", "count=1", "status=none"]
            waiting = subprocess.Popen(argv, env=variables)
            assert eventually(lambda: status(area.scratch / "socket")["tokens"]["read"]["waiting"])
            began = time.perf_counter()
            holder.kill()
            waiting.wait()
            took.append(time.perf_counter() - began)
            holder.communicate()
    return Result("a killed holder's token: seconds until another program has read", max(took), 1.0, "lower")


def _dd(files: Sequence[Path], variables: Environment) -> float:
    commands = [["dd", f"if={file}", "of=/dev/null", "bs=64k", "status=none"] for file in files]
    return together(commands, variables)


def _tar(area: StorageArea, variables: Environment) -> None:
    # tar does not read files for an archive that is /dev/null
    shell = ["sh", "-c", 'tar -C "$1" -cf - "$2" | cat > /dev/null', "sh", str(area.directory)]
    together([[*shell, file.name] for file in area.files], variables)


def _programs(area: StorageArea) -> Iterator[Result]:
    yield _saving(area, "16 dd", partial(_dd, area.files))
    yield _saving(area, "16 tar", partial(_tar, area))
    if shutil.which("mpicc") is None or shutil.which("mpiexec") is None:
        print("MPI programs are not measured: mpicc is not installed (Debian: mpich)")
        return
    for file in area.files:
        file.unlink()
    shared = area.directory / "shared"
    with shared.open("wb") as stream:
        stream.writelines(os.urandom(MIB) for _ in range(TASKS * area.file_bytes // MIB))
    # Ranks that wait for others poll: with a low priority, so that they do not take the device's processor.
    ranks = ["nice", "-n", "10", "mpiexec", "-n", str(TASKS), str(_mpi_program(area)), str(shared)]
    yield _saving(area, "16 ranks of MPI", partial(together, [ranks]))


def _mpi_program(area: StorageArea) -> Path:
    program = area.scratch / "mpi_reader"
    source = Path(__file__).with_name("mpi_reader.c")
    subprocess.run(["mpicc", "-O2", "-o", program, source], check=True)
    return program


def _saving(area: StorageArea, name: str, work: Callable[[Environment], object]) -> Result:
    free, held = compared(area, work, area.readers)
    size = TASKS * area.file_bytes / 1e6
    figures = {"without limits, MB/s": size / free, "with tokens, MB/s": size / held}
    return Result(f"{name} on {area.profile}: time with tokens / without", held / free, 0.8, "lower", figures)


def _flash(area: StorageArea) -> Result:
    """Sweep streams on flash, give the verdict to the server, and ask whether programs are limited."""
    program, runs = _kernel(area), []
    for number in range(1, FLASH_PASSES + 1):
        for readers, writers in ((1, 1), (1, TASKS), (TASKS, 1), (TASKS, TASKS)):
            sizes = [TASKS, 1, FLASH_BYTES, 65536, 1, readers, writers, 0]
            command = [program, str(area.directory / "stream"), *map(str, sizes)]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            runs.append(StreamRow(number, readers, writers, parse_streams(text, "here")[0], {}))
    spot = sweet_spot(runs)
    gain = {"streams": spot.gain.streams._asdict(), "low": spot.gain.low, "high": spot.gain.high}
    verdict = area.scratch / "verdict.json"
    verdict.write_text(json.dumps({"verdict": spot.verdict, "gain": gain}), encoding="utf-8")
    with limited(area, "--from-sweep", str(verdict)) as run:
        print(run.stderr.strip())
        is_off = "LD_PRELOAD" not in run.stdout and "runs without limits: the sweep's verdict" in run.stderr
    figures = {"saved at most": spot.gain.high, "saved at least": spot.gain.low}
    return Result("flash: programs are limited", float(not is_off), 0.0, "lower", figures)
