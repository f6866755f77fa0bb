"""PreCo's kernel against a plain OpenMP loop of the same arithmetic, and two processes of it against one.

Two processes of anything get less than twice as much of a virtual machine whose processors have neighbours.
So the efficiency of two is held against that of two loops that share nothing, measured in turns with them.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tests.bench.base import Result, seconds
from tests.probes.kernels import build, run
from tests.probes.tomography import read_mrc

SIZE, PROJECTIONS, TILT = 256, 121, 60
TIMES = 25
FAST = ("-O3", "-march=native")
PROCESSES = 2


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for kernel in ("phantom", "backproject"):
            build(directory, kernel, FAST)
        _compile(directory, "preco.c", "-fopenmp", "-lm")
        _compile(directory, "nothing_shared.c")
        run(directory / "phantom", "project", directory / "series", SIZE, PROJECTIONS, TILT)
        return [_against_plain(directory), _scaling(directory)]


def _compile(directory: Path, source: str, *options: str) -> None:
    """To a program of the source's name, without its suffix."""
    file = Path(__file__).with_name(source)
    command = ["cc", *FAST, f"-I{directory}", "-o", str(directory / file.stem), str(file), *options]
    subprocess.run(command, check=True)


def _medians(directory: Path, *works: Callable[[], object]) -> list[float]:
    """The median seconds of each, called in turn, without what emptying an old result takes."""
    took: list[list[float]] = [[] for _ in works]
    for _ in range(TIMES):
        for work, sofar in zip(works, took, strict=True):
            for old in (*directory.glob("slab*"), *directory.glob("volume")):
                old.unlink()
            sofar.append(seconds(work))
    return [statistics.median(durations) for durations in took]


def _kernel(directory: Path, processes: int) -> None:
    """Reconstruct all slices, shared by *processes*."""
    ends = [SIZE * (number + 1) // processes for number in range(processes)]
    command = [str(directory / "backproject"), str(directory / "series")]
    _at_once(
        [*command, str(directory / f"slab{first}"), str(first), str(end), str(SIZE), str(TILT)]
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
    )


def _at_once(commands: Iterable[list[str]]) -> None:
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise RuntimeError(f"a process failed: {statuses}")


def _plain(directory: Path) -> None:
    subprocess.run(
        [directory / "preco", directory / "series", directory / "volume", str(TILT)],
        check=True,
        env={"OMP_NUM_THREADS": str(PROCESSES)},
    )


def _against_plain(directory: Path) -> Result:
    ours, plain = _medians(directory, lambda: _kernel(directory, PROCESSES), lambda: _plain(directory))
    _kernel(directory, 1)
    difference = np.abs(read_mrc(directory / "slab0") - read_mrc(directory / "volume")).max()
    if difference > 1e-4:
        raise RuntimeError(f"the plain loop is not the same arithmetic: differs by {difference}")
    updates = float(SIZE**3 * PROJECTIONS)
    return Result(
        name="back projection / a plain OpenMP loop of it",
        ratio=plain / ours,
        target=0.8,
        better="higher",
        figures={"ours, M voxels x projections/s": updates / ours / 1e6, "plain": updates / plain / 1e6},
    )


def _scaling(directory: Path) -> Result:
    loop = [str(directory / "nothing_shared")]
    one, two, one_loop, two_loops = _medians(
        directory,
        lambda: _kernel(directory, 1),
        lambda: _kernel(directory, PROCESSES),
        lambda: _at_once([loop]),
        lambda: _at_once([loop] * PROCESSES),
    )
    efficiency, possible = one / (PROCESSES * two), one_loop / two_loops
    return Result(
        name="back projection, efficiency of 2 processes / the machine's",
        ratio=efficiency / possible,
        target=0.9,
        better="higher",
        figures={
            "one process, ms": one * 1000,
            "two, ms": two * 1000,
            "efficiency": efficiency,
            "of two loops that share nothing": possible,
        },
    )
