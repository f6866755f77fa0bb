"""The kernel's own devices are storage areas: a sweep and streams measure there, and nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.testbed.storage.profile import MIB
from tests.by_night import by_night
from tests.monitor.testbed.storage.kernel_areas import (
    AREAS,
    LIMIT_BYTES_PER_SECOND,
    KernelArea,
    remains,
)

ROOT = Path(__file__).parents[4]
SWEEP = {"request_bytes": 65536, "pattern": "sequential,random", "queue_depth": 1, "direction": "read"}
SWEEP |= {"file_bytes": 4 * MIB, "seconds": 0.5, "tool": "own"}
STREAMS = {"tasks": 2, "readers": "1,2", "writers": "2", "file_bytes": MIB, "bins": 2}
BY_DAY = "tmpfs"


def measured(area: KernelArea, state: Path, probe: str, parameters: dict[str, object]) -> dict[str, float]:
    """Return the metrics of a run of *probe* by the reporter."""
    settings = [f"--set={name}={value}" for name, value in parameters.items()]
    command = [sys.executable, "-m", "reporters", "once", probe, "--json", f"--scratch={area.directory}"]
    done = subprocess.run(
        [*area.prefix, *command, f"--state={state}", *settings],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["outcome"] == "passed", report["failure"]
    return {metric["name"]: metric["value"] for metric in report["metrics"]}


@pytest.mark.parametrize("name", [BY_DAY, *map(by_night, sorted(AREAS.keys() - {BY_DAY}))])
def test_a_sweep_and_streams_measure_on_it(name: str, tmp_path: Path) -> None:
    with AREAS[name](tmp_path) as area:
        sweep = measured(area, tmp_path / "state", "storage_sweep", SWEEP)
        streams = measured(area, tmp_path / "state", "streams", STREAMS)
        left = [path.name for path in area.directory.iterdir()]
    assert remains(tmp_path) == []
    assert set(left) <= {"lost+found"}
    rates = [value for metric, value in sweep.items() if metric.endswith(".bytes_per_second")]
    assert len(rates) == 2
    if name == "limited loop":
        assert rates == [pytest.approx(LIMIT_BYTES_PER_SECOND, rel=0.5)] * 2
    else:
        assert min(rates) > 1.5 * LIMIT_BYTES_PER_SECOND
    assert {f"streams.readers={readers},writers=2.seconds" for readers in (1, 2)} <= streams.keys()


def fail_at(name: str, scratch: Path) -> None:
    with AREAS[name](scratch) as area:
        (area.directory / "file").write_bytes(bytes(MIB))
        assert remains(scratch) != []
        raise RuntimeError("the sweep failed")


@pytest.mark.parametrize("name", AREAS)
def test_a_failure_on_it_leaves_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the sweep failed"):
        fail_at(name, tmp_path)
    assert remains(tmp_path) == []
