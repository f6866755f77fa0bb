"""A real Slurm cluster with closed partitions, and a real Grid Engine cell with a closed queue."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from monitor.testbed.middleware import gridengine, slurm

_PARTITIONS = (
    "Licenses=matlab:2",
    "PartitionName=down Nodes=cn2 State=DOWN",
    "PartitionName=drained Nodes=cn2 State=DRAIN",
    "PartitionName=inactive Nodes=cn2 State=INACTIVE",
    "PartitionName=small Nodes=cn2 MaxTime=5 MaxNodes=1 MaxMemPerCPU=100",
)


@contextlib.contextmanager
def slurm_cluster(directory: Path) -> Iterator[dict[str, str]]:
    """Yield variables: SLURM_CONF, a configuration of a dead controller, and one without munge."""
    directory.mkdir()
    root = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # the path of a socket is short
    try:
        with slurm.cluster(root / "cluster", slurm.SlurmOptions(lines=_PARTITIONS)) as cluster:
            text = cluster.configuration.read_text()
            dead, unauthenticated = directory / "dead.conf", directory / "unauthenticated.conf"
            port = next(line for line in text.splitlines() if line.startswith("SlurmctldPort="))
            dead.write_text(text.replace(port, "SlurmctldPort=1"))
            unauthenticated.write_text(text.replace("/munge/socket", "/munge/none"))
            path = f"{cluster.programs}:{os.environ['PATH']}"
            variables = {"DEAD_CONF": str(dead), "UNAUTHENTICATED_CONF": str(unauthenticated)}
            yield {**cluster.environment, **variables, "PATH": path}
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def gridengine_cell(directory: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of a cell; for root only."""
    with gridengine.cell(directory) as cell:
        yield {
            **cell.environment,
            "PATH": f"{cell.programs}:{os.environ['PATH']}",
            "CELL": str(cell.directory),
        }
