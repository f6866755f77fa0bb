"""``manage.py report study``: the published table, computed from runs of this depot."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

import probes
from monitor.gridfile.define import SeriesDefinition, define
from monitor.ingest.service import ingest_all
from probes.base import checked_parameters
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report

RUNS = 40
GIVEN = {"file_bytes": 10_000, "result_bytes": 10_000}


def run_of(probe: str, slot: datetime, slowness: float, bindings: dict[str, list[str]]) -> bytes:
    """Return a report of *probe* with *slowness* seconds per stage."""
    code = probes.load(probe)
    stages = [
        wire.StageTiming(stage.name, stage.category, slowness, slowness * number)
        for number, stage in enumerate(code.stages)
    ]
    return wire.to_json(
        replace(
            circle_report(slot, series=probe),
            probe=wire.ProbeIdentity(probe, code.version, "f" * 64),
            parameters=checked_parameters(code, GIVEN if probe == "gather" else {}),
            seconds=slowness * len(stages),
            stages=stages,
            bindings={role: tuple(names) for role, names in bindings.items()},
        )
    )


@pytest.fixture
def grid(db: None, tmp_path: Path) -> dict[str, dict[str, list[str]]]:
    resources = [
        ResourceConfig(name, f"site-of-{name}", str(tmp_path / name)) for name in ("alpha", "beta", "gamma")
    ]
    bindings = {
        "gather": {"sources": ["alpha"], "compute": ["beta"], "destination": ["gamma"]},
        "preco": {"source": ["alpha"], "compute": ["beta"], "destination": ["gamma"]},
    }
    define(
        resources,
        [
            SeriesDefinition("gather", "gather", bindings["gather"], GIVEN),
            SeriesDefinition("preco", "preco", bindings["preco"], {}),
        ],
    )
    return bindings


@pytest.fixture
def two_days(grid: dict[str, dict[str, list[str]]], noon: datetime) -> None:
    """Store hourly runs of Gather and, ten minutes later, of PreCo, which always takes twice as long."""
    weather = random.Random(5)
    reports = []
    for number in range(RUNS):
        slot, slowness = noon + timedelta(hours=number), weather.uniform(1.0, 5.0)
        reports.append(run_of("gather", slot, slowness, grid["gather"]))
        reports.append(run_of("preco", slot + timedelta(minutes=10), 2.0 * slowness, grid["preco"]))
    receipts = ingest_all(reports)
    assert [receipt.error for receipt in receipts if not receipt.accepted] == []


def study_output(*options: str) -> str:
    out = io.StringIO()
    call_command("report", "study", *options, stdout=out)
    return out.getvalue()


def test_a_perfectly_correlated_probe_predicts_better_than_history(two_days: None) -> None:
    document = json.loads(study_output("--json"))
    total = document["metrics"]["total.seconds"]
    assert total["lrp"]["n"] == total["nws"]["n"] > 20
    assert total["lrp"]["relative_error"] < 0.01
    assert total["nws"]["relative_error"] > 0.2
    assert document["published_relative_error_of_total"]["nws"] == pytest.approx(0.0857)
    assert document["facts"]["runs"] == RUNS
    assert document["facts"]["probe_age_seconds"] == 600.0


def test_the_table_has_seven_metrics_published_errors_and_differences(two_days: None) -> None:
    text = study_output()
    heading, *rows = text.splitlines()
    assert heading.split()[:3] == ["transfer_data", "queue_wait", "compute"]
    assert next(row for row in rows if row.startswith("TSP ")).endswith("8.57%")
    assert f"{RUNS} runs of 1 series" in text
    assert "10 min before preco (median)" in text


@pytest.mark.parametrize("options", [["--days=0"], ["--days=nan"], ["--warm-up=-1"]])
def test_an_invalid_option_is_reported_by_name(options: list[str]) -> None:
    with pytest.raises(CommandError, match=options[0].partition("=")[0]):
        study_output(*options)


def test_without_runs_the_command_reports_what_it_needs(grid: dict[str, dict[str, list[str]]]) -> None:
    with pytest.raises(CommandError, match="0 runs of preco have passed"):
        study_output()
