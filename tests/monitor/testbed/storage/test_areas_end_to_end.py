"""Three emulated areas, real runs: *Storage* answers; MADbench is ranked where it never ran, and scored."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from monitor.analysis.forecasts import refresh
from monitor.analysis.storage.compute import refresh_verdicts
from monitor.depot.rollups import worker
from monitor.models import ApiToken, Forecast, Series
from monitor.models.run import State
from monitor.models.token import READ
from monitor.runs.ledger.claim import claim_one
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.run_claimed import run_claimed
from tests.monitor.testbed.storage.area_runs import (
    MADBENCH,
    PROFILES,
    ROOT,
    STREAMS,
    SWEEP,
    mounted_areas,
    signature,
)
from tests.ordinary_user import NOBODY, environment_for_nobody, only_root, python_for_nobody
from tests.reporters.needs import needs

pytestmark = [pytest.mark.nightly, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def areas(emulator: Path, tmp_path: Path) -> Iterator[dict[str, Path]]:
    """The scratch directory on each emulated device."""
    with mounted_areas(emulator, tmp_path) as found:
        yield found


def grid_file(areas: dict[str, Path], text: str) -> str:
    local = {"kind": "local"}
    probes = {
        "sweep": ("storage_sweep", "target", SWEEP),
        "streams": ("streams", "target", STREAMS),
        "replay": ("replay", "target", {"signature": text}),
        "madbench": ("madbench", "compute", {**MADBENCH, "trace": True}),
    }
    return yaml.safe_dump(
        {
            "version": 1,
            "sites": {"here": {}},
            "resources": {
                name: {"site": "here", "scratch": str(scratch), "shell": local, "transfer": local}
                for name, scratch in areas.items()
            },
            "suites": {"storage": {}},
            "series": {
                f"{series}-{area}": {
                    "suite": "storage",
                    "probe": probe,
                    "bindings": {role: [area]},
                    "parameters": parameters,
                }
                for series, (probe, role, parameters) in probes.items()
                for area in areas
            },
        }
    )


def run(*names: str) -> None:
    for name in names:
        requested = run_now(Series.objects.get(name=name), who="ada")
        claim = claim_one(requested, timezone.now())
        assert claim is not None
        run_claimed([claim.run_id], [claim.slot])
        requested.refresh_from_db()
        assert requested.state == State.PASSED, requested.reason
    while worker.gather():
        pass
    refresh.refresh_all(timezone.now())


def test_an_application_is_ranked_where_it_never_ran_and_its_next_run_scores_the_forecast(
    areas: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(grid_file(areas, signature(areas["disk"], tmp_path)), encoding="utf-8")
    call_command("grid", "apply", str(file), stdout=StringIO())
    for _ in range(3):
        run(*(f"{series}-{area}" for series in ("sweep", "streams", "replay") for area in areas))
        run("madbench-disk")
    refresh_verdicts(timezone.now(), within_seconds=60.0)
    token = ApiToken.objects.issue(User.objects.create_user("viewer"), "scheduler", [READ])
    client = Client(headers={"authorization": f"Bearer {token}"})
    shown = {area["name"]: area for area in client.get("/api/v1/storage").json()["areas"]}
    assert shown.keys() == areas.keys()
    assert "sequential_read" in shown["flash"]["good_for"]
    details = client.get("/api/v1/storage/disk").json()
    verdicts = {verdict["probe"]: verdict for verdict in details["verdicts"]}
    assert verdicts["storage_sweep"]["effects"] is not None
    assert verdicts["streams"]["streams"] is not None

    never_run = ["flash", "raid"]
    candidates = [{"roles": {"compute": [area]}} for area in never_run]
    question = {"application": "madbench", "candidates": candidates}
    answer = client.post("/api/v1/forecasts/rank", question, content_type="application/json").json()
    assert answer["unranked"] == []
    ranked = {prediction["series"]: prediction for prediction in answer["ranked"]}
    assert ranked.keys() == {f"madbench-{area}" for area in never_run}
    for area in never_run:
        prediction = ranked[f"madbench-{area}"]
        assert (prediction["method"], prediction["n"]) == ("elsewhere", 0)
        basis = prediction["basis"]
        assert (basis["reference"], basis["replay"]) == ("madbench-disk", f"replay-{area}")
        run(f"madbench-{area}")
        forecast = Forecast.objects.get(pk=prediction["forecast"])
        assert forecast.truth is not None
        assert forecast.median / 3 < forecast.truth < forecast.median * 3


# Whether or not the host lets ordinary users mount: a device file that does, in a mount namespace of its own.
WITH_FUSE = """
mknod "$0/fuse" c 10 229 && chmod 666 "$0/fuse" && mount --bind "$0/fuse" /dev/fuse || exit 77
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""


@only_root
@pytest.mark.usefixtures("emulator")
def test_an_ordinary_user_sweeps_traces_and_replays_on_each_area() -> None:
    needs("unshare", "setpriv")
    with tempfile.TemporaryDirectory(prefix="gridcast-test-") as home:
        os.chown(home, NOBODY, NOBODY)
        program = [python_for_nobody(), "-B", "-m", "tests.monitor.testbed.storage.area_runs", home]
        done = subprocess.run(
            ["unshare", "--mount", "--propagation=private", "sh", "-c", WITH_FUSE, home, *program],
            cwd=ROOT,
            env=environment_for_nobody(Path(home)),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 77 or done.stderr.startswith("unshare: "):
        pytest.skip(f"no mount namespace with a device file: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    outcomes = dict.fromkeys(("storage_sweep", "streams", "replay"), "passed")
    assert json.loads(done.stdout) == {"user": NOBODY, "outcomes": dict.fromkeys(PROFILES, outcomes)}
