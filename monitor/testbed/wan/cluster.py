"""Run a Slurm cluster in a site's namespaces: ``python -m monitor.testbed.wan.cluster DIRECTORY HOSTNAME``.

The program prints ``up`` when jobs can be submitted. All servers listen on the site's loopback interface.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from monitor.testbed.middleware.slurm import SlurmOptions, cluster

PROGRAMS = "bin"  # in the cluster's directory: its clients


def main(argv: Sequence[str]) -> None:
    directory, hostname = argv[1:]
    with cluster(Path(directory), SlurmOptions(hostname=hostname)):
        print("up", flush=True)  # noqa: T201 - the parent process waits for it
        signal.pause()  # until its namespaces end


if __name__ == "__main__":
    main(sys.argv)
