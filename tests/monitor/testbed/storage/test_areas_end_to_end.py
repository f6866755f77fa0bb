"""Two emulated areas, real runs: *Storage* answers, and MADbench is ranked where it never ran, and scored."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from monitor.depot.rollups import worker
from monitor.forecasts import refresh
from monitor.ledger.claim import claim_one
from monitor.ledger.run_now import run_now
from monitor.models import ApiToken, Forecast, Series
from monitor.models.run import State
from monitor.models.token import READ
from monitor.storage.compute import refresh_verdicts
from monitor.testbed.storage import profiles
from monitor.testbed.storage.mount import mounted
from monitor.worker.run_claimed import run_claimed

pytestmark = [pytest.mark.nightly, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).parents[4]
MADBENCH = {"no_pix": 512, "no_bin": 4, "tasks": 2}
SWEEP: dict[str, object] = {"request_bytes": "4096,1048576", "pattern": "sequential", "queue_depth": "1"}
SWEEP |= {"direction": "read", "file_bytes": 4_194_304, "seconds": 0.05, "tool": "own"}
STREAMS = {"tasks": 2, "file_bytes": 1_048_576, "bins": 2}
AREAS = {"disk": "p690-scsi", "flash": "flash"}


@pytest.fixture
def areas(emulator: Path, tmp_path: Path) -> Iterator[dict[str, Path]]:
    """The scratch directory on each emulated device."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, profile in AREAS.items():
            directory = tmp_path / name
            directory.mkdir()
            stack.enter_context(mounted(emulator, directory, profiles.load(profile)))
            found[name] = directory / "scratch"
            found[name].mkdir(mode=0o700)
        yield found


def reporter(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "reporters", *arguments], cwd=ROOT, check=True, capture_output=True)


def signature(scratch: Path, directory: Path) -> str:
    """Trace MADbench at *scratch* by hand, as docs/storage.md says, and return its signature."""
    settings = [f"--set={name}={value}" for name, value in MADBENCH.items()]
    probe = [sys.executable, "-m", "reporters", "once", "madbench", f"--scratch={scratch}", *settings]
    trace, file = str(directory / "trace"), directory / "madbench.json"
    reporter("iotrace", "run", "-o", trace, "--area", str(scratch), "--only", "madbench", "--", *probe)
    reporter("iotrace", "signature", trace, "-o", str(file), "--application", "madbench", *settings)
    return file.read_text(encoding="utf-8").strip()


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

    question = {"application": "madbench", "candidates": [{"roles": {"compute": ["flash"]}}]}
    answer = client.post("/api/v1/forecasts/rank", question, content_type="application/json").json()
    assert answer["unranked"] == []
    (first,) = answer["ranked"]
    assert (first["series"], first["method"], first["n"]) == ("madbench-flash", "elsewhere", 0)
    assert (first["basis"]["reference"], first["basis"]["replay"]) == ("madbench-disk", "replay-flash")
    run("madbench-flash")
    forecast = Forecast.objects.get(pk=first["forecast"])
    assert forecast.truth is not None
    assert forecast.median / 3 < forecast.truth < forecast.median * 3
