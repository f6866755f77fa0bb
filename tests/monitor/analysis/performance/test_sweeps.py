"""Stored runs of sweeps are read by combination and pass, and exported as CSV."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

import probes
from forecasting.reading.sweeps import read, read_streams
from forecasting.sweeps.effects import effects_of
from forecasting.sweeps.sweet_spot import sweet_spot
from monitor.analysis.performance.sweep_csv import sweep_csv
from monitor.analysis.performance.sweeps import as_streams, as_sweep, stored_sweeps
from monitor.models import Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from probes.base import checked_parameters
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.analysis.performance.runs import HOUR, ingested
from tests.monitor.builders import circle_report
from tests.monitor.conftest import NOON

BEGAN = 1_772_366_400


def defined(probe: str, directory: Path) -> Series:
    resources = [ResourceConfig("area", "site", str(directory))]
    define(resources, [SeriesDefinition(probe, probe, {"target": ["area"]}, {}, "@hourly")])
    Series.objects.update(created_at=NOON)
    return Series.objects.get()


def run_of(
    probe: str, slot: datetime, number: int, values: Mapping[str, float], began: float = BEGAN, **changes: Any
) -> wire.Report:
    """Return the report of a run that measured *values*, by metric without its prefix, in a pass."""
    prefix, loaded = {"storage_sweep": "sweep", "streams": "streams"}[probe], probes.load(probe)
    metrics = [wire.MetricValue(f"{prefix}.{name}", value, "x") for name, value in values.items()]
    metrics += [
        wire.MetricValue(f"{prefix}.pass", number, "pass"),
        wire.MetricValue(f"{prefix}.began", began, "seconds"),
    ]
    return replace(
        circle_report(slot, series=probe),
        probe=wire.ProbeIdentity(probe, loaded.version, "0" * 64),
        parameters=checked_parameters(loaded, {}),
        metrics=metrics,
        bindings={"target": ("area",)},
        **changes,
    )


def cell(request_bytes: int, pattern: str) -> str:
    return (
        f"request_bytes={request_bytes},pattern={pattern},queue_depth=1,direction=read,cache=direct,file=own,"
        "tasks=1.bytes_per_second"
    )


def rates(number: int) -> dict[str, float]:
    """The values of a pass: large requests are twice as fast, random ones a tenth; the first pass is cold."""
    return {
        cell(size, pattern): (1 + (size > 4096))
        * (1.0 if pattern == "sequential" else 0.1)
        * (0.5 if number == 1 else 1.0 + 0.001 * number)
        for size in (4096, 65_536)
        for pattern in ("sequential", "random")
    }


@pytest.fixture
def sweep(db: None, tmp_path: Path) -> Series:
    """Seven passes of four combinations; the second pass in two runs, of which one failed."""
    series = defined("storage_sweep", tmp_path)
    reports: list[wire.Report] = []
    for number in range(1, 8):
        values = list(rates(number).items())
        parts: Iterable[dict[str, float]] = [dict(values)]
        if number == 2:
            parts = [dict(values[:3]), dict(values[3:])]
        for part in parts:
            slot = NOON + len(reports) * HOUR
            outcome: dict[str, Any] = {"outcome": "failed", "reason": "disk full"} if len(part) == 3 else {}
            reports.append(run_of("storage_sweep", slot, number, part, **outcome))
    ingested(reports)
    return series


def test_a_sweep_is_read_by_combination_and_pass(sweep: Series) -> None:
    (stored,) = stored_sweeps(sweep)
    assert stored.factors == (
        "request_bytes", "pattern", "queue_depth", "direction", "cache", "file", "tasks",
    )  # fmt: skip
    assert (len(stored.values), stored.passes, stored.varied) == (28, 7, ("request_bytes", "pattern"))
    cells = as_sweep(stored).cells
    assert {levels: len(values) for levels, values in cells.items()} == {
        (size, pattern): 7 for size in ("4096", "65536") for pattern in ("sequential", "random")
    }


def test_the_csv_has_marks_and_effects_reads_it(sweep: Series, tmp_path: Path) -> None:
    text = sweep_csv(stored_sweeps(sweep)[0])
    lines = text.splitlines()
    assert lines[0] == "request_bytes,pattern,pass,value,set_aside,outlier,steady"
    assert lines[1] == "4096,random,1,0.05,1,0,0"
    assert lines[-1] == "65536,sequential,7,2.014,0,0,1"
    file = tmp_path / "sweep.csv"
    file.write_text(text)
    found = effects_of(read(str(file)))
    assert {effect.term for effect in found.terms if effect.is_claimed} >= {("request_bytes",), ("pattern",)}
    assert found.first_pass is not None
    assert found.first_pass.ratio == pytest.approx(0.5, rel=0.01)


def test_a_value_that_stands_out_is_marked_and_stays(sweep: Series) -> None:
    ingested([run_of("storage_sweep", NOON + 20 * HOUR, 8, {cell(4096, "random"): 10.0})])
    rows = [line.split(",") for line in sweep_csv(stored_sweeps(sweep)[0]).splitlines()]
    assert [row[:4] for row in rows if row[5] == "1"] == [["4096", "random", "8", "10.0"]]


def test_a_combination_that_was_measured_twice_in_a_pass_has_its_first_value(sweep: Series) -> None:
    ingested([run_of("storage_sweep", NOON + 20 * HOUR, 7, {cell(4096, "random"): 10.0})])
    (stored,) = stored_sweeps(sweep)
    assert len(stored.values) == 28
    assert 10.0 not in {value.value for value in stored.values}


def printed(*arguments: str) -> str:
    output = io.StringIO()
    call_command("sweep", *arguments, stdout=output)
    return output.getvalue()


def test_the_command_lists_sweeps_and_exports_one(sweep: Series, tmp_path: Path) -> None:
    ingested([run_of("storage_sweep", NOON + 20 * HOUR, 1, rates(1), began=BEGAN + 3600)])
    assert printed("storage_sweep", "--list").splitlines() == [
        "2026-03-01T12:00:00Z  4 combinations, 7 passes, 28 values: request_bytes, pattern",
        "2026-03-01T13:00:00Z  4 combinations, 1 pass, 4 values: request_bytes, pattern",
    ]
    assert printed("storage_sweep") == sweep_csv(stored_sweeps(sweep)[0])
    assert printed("storage_sweep", "--began", "2026-03-01T13:00:00Z").count("\n") == 5
    assert printed("storage_sweep", "--output", str(tmp_path / "out.csv")) == ""
    assert (tmp_path / "out.csv").read_text() == sweep_csv(stored_sweeps(sweep)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["storage_swep"], "there is no series 'storage_swep'; near names: storage_sweep"),
        (["storage_sweep", "--began", "2026-03-02T00:00:00Z"], "no sweep began at"),
        (["storage_sweep", "--output", "/nowhere/x.csv"], "cannot write /nowhere/x.csv: No such file"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(
    sweep: Series, arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        printed(*arguments)


def test_a_series_of_another_probe_has_no_sweep(circle: Series) -> None:
    assert stored_sweeps(circle) == []
    with pytest.raises(CommandError, match=r"circle has no sweep: .* got the probe circle"):
        printed("circle")


def test_a_sweep_of_streams_is_what_sweet_spot_reads(db: None, tmp_path: Path) -> None:
    series = defined("streams", tmp_path)
    for number in range(1, 5):
        values = {}
        for readers in (1, 4):
            setting = f"readers={readers},writers=4"
            values[f"{setting}.seconds"] = (8.0 if readers == 4 else 4.0) + 0.01 * number
            values |= {f"{setting}.{name}.seconds": 0.5 for name in ("io", "barrier", "spread", "write")}
        ingested([run_of("streams", NOON + number * HOUR, number, values)])
    (stored,) = stored_sweeps(series)
    file = tmp_path / "streams.csv"
    file.write_text(sweep_csv(stored))
    assert file.read_text().splitlines()[:2] == [
        "readers,writers,pass,seconds,io_seconds,barrier_seconds,spread_seconds",
        "1,4,1,4.01,0.5,0.5,0.5",
    ]
    spot = sweet_spot(read_streams(str(file)))
    assert (spot.verdict, spot.gain.streams) == ("helps", (1, 4))
    assert sweet_spot(as_streams(stored)).gain == spot.gain
