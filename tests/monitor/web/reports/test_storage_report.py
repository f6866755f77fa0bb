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
from pytest_django.plugin import DjangoDbBlocker

from monitor.analysis.storage.compute import refresh_verdicts
from monitor.models import Resource
from monitor.testbed.storage import profiles
from monitor.web.reports.published_storage import (
    BASELINE_RANDOM_READ,
    CHARACTERISATION_ERRATA,
    MEAN_ERRORS,
    NO_RAID,
    ONE_DRIVE,
    PREDICTION_ERRORS,
    RAID_READERS,
    RATES,
    SPECIFIED_DRIVE,
    SWEEP_RUNS,
    THROTTLING,
    TUNING_STEPS,
    Rates,
)
from tests.databases import using_settings
from tests.monitor.analysis.storage import measured
from tests.monitor.web.pages import builders
from tests.reporters.needs import needs

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def output(*options: str | Path) -> str:
    out = io.StringIO()
    call_command("report", "storage", *map(str, options), stdout=out)
    return out.getvalue()


def tables() -> dict[str, list[list[str]]]:
    """Return the rows of the tables of the report, by title."""
    sections = json.loads(output("--json"))["sections"]
    return {table["title"]: table["rows"] for section in sections for table in section["tables"]}


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
    bare = NO_RAID.rates.random_read
    assert bare / (16 * ONE_DRIVE.rates.random_read) == pytest.approx(0.88, abs=0.01)
    assert bare / (16 * SPECIFIED_DRIVE.rates.random_read) == pytest.approx(1.0, abs=0.01)


def test_the_published_steps_of_tuning_fit_another_beginning_than_the_published_one() -> None:
    rates = [step.fits.rates.random_read for step in TUNING_STEPS]
    assert [round(rate / 45_500, 1) for rate in rates] == [step.factor for step in TUNING_STEPS]
    *others, last = [f"{rate / BASELINE_RANDOM_READ:.1f}" for rate in rates]
    told = f"{', '.join(others)} and {last}"
    assert any(told in erratum for erratum in CHARACTERISATION_ERRATA)


def test_each_device_that_stands_for_a_published_system_is_emulated() -> None:
    by_rates = [each.profile for each in RATES if each.profile]
    by_times = [table.profile for table in THROTTLING]
    named = [*by_rates, *by_times, RAID_READERS.profile]
    assert len(set(named)) == len(named) == 7
    assert set(named) <= set(profiles.names())


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
    (rows,) = (rows for title, rows in tables().items() if title.startswith("p690, RAID 5 of six"))
    assert [row[:2] for row in rows] == [["1", "+13.0%"], ["2", "+2.0%"], ["4", "+0.0%"], ["16", "+40.0%"]]
    emulated = [float(row[2].removesuffix("%")) for row in rows]
    assert min(emulated) == emulated[2] == 0.0
    assert all(abs(float(row[3].removesuffix("%"))) <= 15.0 for row in rows)


@pytest.mark.django_db
def test_the_published_rates_powers_and_figures_of_merit_are_printed() -> None:
    found = tables()
    rates = {row[0]: row[1:] for row in found["Rates: large sequential and small random I/O"]}
    assert rates["published: one drive, by its specification"] == ["170", "250", "3,300", "35,000"]
    assert [row[1:] for row in found["Power; ours active, as in the grid file"]] == [
        ["14", "70", "35", "307"],
        ["64", "2.4", "0.1", "712"],
        ["2,000", "11", "7", "35"],
    ]
    (merits,) = (rows for title, rows in found.items() if title.startswith("Rates for price and capacity"))
    assert merits[0] == ["published: HDD", "2,048", "0.40", "0.15", "0.4 to 1.0", "0.05 to 0.1", "307"]
    steps = found["Published: random reads a second by the steps of tuning"]
    assert [row[1] for row in steps] == ["1.9", "5.6", "12.4", "98.8"]
    assert [row[2] for row in steps] == ["87,400", "257,600", "570,400", "4,544,800"]


@pytest.mark.django_db
def test_a_number_that_was_not_published_is_a_dash_and_the_report_says_so() -> None:
    (applications,) = (rows for title, rows in tables().items() if title.startswith("Published: seconds of"))
    assert [row[1] for row in applications if row[0].startswith("PTF")] == ["-", "-"]
    assert "A dash stands for a number that was not published" in output()


@pytest.mark.django_db
def test_the_rates_of_emulated_flash_stand_beside_the_published_ones() -> None:
    needs("cc")
    rows = tables()["Emulated devices beside the published systems"]
    assert [row[0] for row in rows] == 4 * ["flash"] + 4 * ["flash-raid0-16"] + 4 * ["ram"]
    published = {each.profile: each.rates for each in RATES if each.profile}
    for place, row in enumerate(rows):
        value, emulated = (float(cell.replace(",", "")) for cell in row[3:5])
        assert value == published[row[0]][place % len(Rates._fields)]
        assert float(row[5].removesuffix("%")) == pytest.approx(100.0 * (emulated / value - 1.0), abs=0.1)
    differences = {(row[0], row[2]): abs(float(row[5].removesuffix("%"))) for row in rows}
    for rate in ("Read MB/s", "Random writes/s", "Random reads/s"):
        assert differences["flash", rate] < 5.0
    assert differences["flash-raid0-16", "Read MB/s"] < 5.0
    assert differences["flash-raid0-16", "Random reads/s"] < 15.0


def test_a_database_without_tables_leaves_the_published_numbers(
    django_db_blocker: DjangoDbBlocker, capsys: pytest.CaptureFixture[str]
) -> None:
    with django_db_blocker.unblock(), using_settings({"NAME": "postgres"}):
        document = json.loads(output("--json"))
    assert document["depot_problem"] == "it has no tables yet"
    assert capsys.readouterr().err == "No depot was read: it has no tables yet\n"
    assert len(document["sections"]) == 9


@pytest.mark.usefixtures("areas")
def test_our_numbers_stand_beside_the_published_ones() -> None:
    found = tables()
    rates = found["Rates: large sequential and small random I/O"]
    assert [row[0] for row in rates][-1] == "ours: flash-login"
    sweeps = found["Sweeps; of ours, values and outliers after the first pass"]
    assert [row[0] for row in sweeps] == ["published", "ours: flash-sweep"]
    assert found["Ours: sweeps of streams"][0][1] == "helps"
    *_, power = found["Power; ours active, as in the grid file"]
    assert power[:4] == ["ours: flash-login", "64", "2.5", "-"]
    assert float(power[4]) == pytest.approx(float(rates[-1][4]) / 2.5, rel=0.01)


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
