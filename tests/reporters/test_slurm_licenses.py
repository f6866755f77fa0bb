"""What docs/storage.md advises for Slurm: licences limit how many jobs use a storage area at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.testbed.middleware.slurm import SlurmOptions
from tests.reporters.clusters import slurm_cluster
from tests.waiting import eventually

pytestmark = pytest.mark.nightly


def test_no_more_jobs_use_an_area_than_it_has_licences(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with slurm_cluster(SlurmOptions(lines=["Licenses=area:2"])) as slurm:
        for _ in range(3):
            script = f"until [ -e {gate} ]; do sleep 0.1; done"
            slurm.run("sbatch", "--licenses=area:1", "--output=/dev/null", f"--wrap={script}")

        def states() -> list[str]:
            return sorted(slurm.run("squeue", "--noheader", "--format=%T %r").splitlines())

        assert eventually(lambda: states() == ["PENDING Licenses", "RUNNING None", "RUNNING None"]), states()
        gate.touch()
        assert eventually(lambda: states() == []), states()
