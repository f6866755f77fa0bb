"""A test server for every kind of batch system that needs one; a new one has a maker in ``batch_system``.

Slurm and Grid Engine are real. For the others no server is available; scripted stand-ins of their commands
run the jobs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monitor.testbed.middleware import gridengine, slurm
from tests.reporters.needs import needs
from tests.reporters.places import Place
from tests.reporters.stand_ins import Condor, OpenPbs, served

PLAIN_SLURM = slurm.SlurmOptions()
SLURM_PROGRAMS = (*slurm.SERVERS, *slurm.CLIENTS)


@contextlib.contextmanager
def batch_system(kind: str) -> Iterator[Path | None]:
    """Run a batch system; yield the directory of its client programs, None if it needs none."""
    makers: dict[str, Callable[[], contextlib.AbstractContextManager[Path | None]]] = {
        "gridengine": _gridengine,
        "htcondor": lambda: served(Condor()),
        "pbs": lambda: served(OpenPbs()),
        "slurm": _slurm,
    }
    with makers.get(kind, contextlib.nullcontext)() as programs:
        yield programs


@contextlib.contextmanager
def slurm_cluster(options: slurm.SlurmOptions = PLAIN_SLURM) -> Iterator[slurm.SlurmCluster]:
    needs(*SLURM_PROGRAMS)
    root = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    try:
        with slurm.cluster(root / "cluster", options) as cluster:
            yield cluster
    finally:
        shutil.rmtree(root)


def install(programs: Path | None, place: Place) -> None:
    """Install the client programs of a batch system at *place*."""
    for program in sorted(programs.iterdir()) if programs else ():
        place.install(program.name, f'exec {program} "$@"')


@contextlib.contextmanager
def gridengine_cell() -> Iterator[gridengine.GridEngineCell]:
    needs(*gridengine.SERVERS, *gridengine.CLIENTS)
    if os.geteuid() != 0:
        pytest.skip("sge_execd serves root only")
    root = Path(tempfile.mkdtemp(prefix="ge-", dir="/tmp"))
    try:
        with gridengine.cell(root / "cell") as cell:
            yield cell
    finally:
        shutil.rmtree(root)


@contextlib.contextmanager
def _gridengine() -> Iterator[Path]:
    with gridengine_cell() as cell:
        yield cell.programs


@contextlib.contextmanager
def _slurm() -> Iterator[Path]:
    with slurm_cluster() as cluster:
        yield cluster.programs
