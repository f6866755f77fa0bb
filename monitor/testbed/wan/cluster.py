"""A Slurm cluster inside a site: ``python -m monitor.testbed.wan.cluster DIRECTORY HOSTNAME``, run in there.

It says ``up`` when jobs can be handed in. All of it is on the site's own loopback, which nobody else sees.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from monitor.testbed.middleware.slurm import SlurmOptions, cluster

PROGRAMS = "bin"  # of the cluster's directory: clients that find it


def main(argv: Sequence[str]) -> None:
    directory, hostname = argv[1:]
    with cluster(Path(directory), SlurmOptions(hostname=hostname)):
        print("up", flush=True)  # noqa: T201 - whoever started this waits for it
        signal.pause()  # the end of its namespaces is the end of it


if __name__ == "__main__":
    main(sys.argv)
