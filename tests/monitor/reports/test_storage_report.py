"""``manage.py report storage``: published tables beside ours, with what contradicts itself named."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from statistics import fmean

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.models import Resource
from monitor.reports.published_storage import (
    MEAN_ERRORS,
    ONE_DRIVE,
    PREDICTION_ERRORS,
    RATES,
    SWEEP_RUNS,
    THROTTLING,
)
from monitor.storage.compute import refresh_verdicts
from tests.monitor.pages import builders
from tests.monitor.storage import measured
from tests.reporters.needs import needs

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def output(*options: str | Path) -> str:
    out = io.StringIO()
    call_command("report", "storage", *map(str, options), stdout=out)
    return out.getvalue()


@pytest.fixture
def areas(db: None) -> None:
    now = timezone.now()
    flash = builders.site("flash")
    Resource.objects.update(storage=measured.STORAGE)
    measured.disk_history(
        measured.storage_series("flash-disk", "disk", flash), measured.FLASH, now - HOUR, runs=2
    )
    measured.sweep_passes(measured.storage_series("flash-sweep", "storage_sweep", flash), now - DAY, passes=3)
    measured.stream_passes(measured.storage_series("flash-streams", "streams", flash), now - DAY, passes=3)
    refresh_verdicts(now, within_seconds=60.0)


def test_the_published_numbers_agree_with_each_other() -> None:
    assert SWEEP_RUNS == 16_800
    for name in ("read", "write", "total"):
        mean = fmean(abs(getattr(error, name)) for error in PREDICTION_ERRORS)
        assert mean == pytest.approx(getattr(MEAN_ERRORS, name), abs=0.006)
    bare = next(rates for rates in RATES if rates.system == "16 drives, no RAID")
    assert bare.random_read / (16 * ONE_DRIVE.random_read) == pytest.approx(0.88, abs=0.01)


def test_the_contradictions_of_the_published_tables_are_in_their_numbers() -> None:
    _, single, cluster = THROTTLING
    assert sum(single.columns[16, 16]) == 371 > single.seconds[16, 16]
    rest = {streams: cluster.seconds[streams] - sum(cluster.columns[streams]) for streams in cluster.seconds}
    assert rest.pop((1, 2)) == -133
    assert min(rest.values()) >= 457
    assert max(rest.values()) <= 467


@pytest.mark.django_db
def test_without_storage_areas_there_are_published_tables_and_emulated_ones() -> None:
    text = output()
    assert "This depot has no storage area" in text
    assert "16,800 runs of 10 s" in text
    assert "Einstein: the share of reads" in text
    assert "Difference" in text


@pytest.mark.django_db
def test_the_published_times_by_readers_of_a_raid_stand_beside_emulated_ones() -> None:
    needs("cc")
    document = json.loads(output("--json"))
    tables = {table["title"]: table for section in document["sections"] for table in section["tables"]}
    (rows,) = (table["rows"] for title, table in tables.items() if title.startswith("p690, RAID 5 of six"))
    assert [row[:2] for row in rows] == [["1", "+13.0%"], ["2", "+2.0%"], ["4", "+0.0%"], ["16", "+40.0%"]]
    emulated = [float(row[2].removesuffix("%")) for row in rows]
    assert min(emulated) == emulated[2] == 0.0
    assert all(abs(float(row[3].removesuffix("%"))) <= 15.0 for row in rows)


@pytest.mark.usefixtures("areas")
def test_our_numbers_stand_beside_the_published_ones() -> None:
    document = json.loads(output("--json"))
    tables = {table["title"]: table for section in document["sections"] for table in section["tables"]}
    rates = tables["Rates: large sequential and small random I/O"]["rows"]
    assert [row[0] for row in rates][-1] == "ours: flash-login"
    sweeps = tables["Sweeps; of ours, values and outliers after the first pass"]["rows"]
    assert [row[0] for row in sweeps] == ["published", "ours: flash-sweep"]
    assert tables["Ours: sweeps of streams"]["rows"][0][1] == "helps"


@pytest.mark.usefixtures("areas")
def test_files_are_written_in_each_form(tmp_path: Path) -> None:
    html, table = tmp_path / "storage.html", tmp_path / "storage.csv"
    assert output("--html", html, "--csv", table) == f"{html}: written\n{table}: written\n"
    assert "<h1>Storage: our numbers beside published ones</h1>" in html.read_text()
    rows = list(csv.reader(io.StringIO(table.read_text())))
    assert {row[0] for row in rows} >= {"1", "2", "3"}
    diamond = next(row for row in rows if row[2:4] == ["POSIX", "Diamond"])
    assert [float(cell) for cell in diamond[4:]] == [-68.68, 17.81, -45.38]
    software = next(row for row in rows if row[0] == "4" and "software RAID" in row[2])
    assert software[3:] == ["0.4", "0.455", "0.51"]
    largest = next(row for row in rows if row[0] == "2" and row[2] != "Sweep")
    assert float(largest[4]) > 0.0  # a share: a sign before it would make it a text
    assert not any(cell in {"-", "'-"} for row in rows for cell in row)


@pytest.mark.django_db
def test_the_study_has_no_csv(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--csv: the study has no CSV"):
        call_command("report", "study", "--csv", str(tmp_path / "x.csv"))
