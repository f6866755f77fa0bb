"""A year of I/O benchmarks: columns, and the peculiarities of the data."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from monitor.runs.imports.formats.base import ImportedRun, Item, Unreadable
from tests.monitor.runs.imports.formats.reading import (
    lines_of,
    metrics,
    needs_shared_data,
    read,
    read_shared,
    refused,
    runs,
    skipped,
)

CORI = "tokio-abc/cori-summaries_2017-02-14-2018-02-15.csv.gz"
MIRA = "tokio-abc/mira-summaries_2017-02-14_2018-02-15.csv.gz"
ROW = {
    "_file_system": "fs1",
    "_datetime_start": "1487381000",
    "darshan_app": "/home/bench/bin.alpha-old/ior",
    "darshan_start_time": "1487381283",
    "darshan_walltime": "8",
    "darshan_nprocs": "512",
    "darshan_biggest_read_api_bytes": "0",
    "darshan_biggest_read_api_files": "0",
    "darshan_biggest_write_api_bytes": "1048576",
    "darshan_biggest_write_api_files": "512",
}


def csv_row(**changes: str) -> str:
    row = {**ROW, **changes}
    return f"{','.join(row)}\n{','.join(row.values())}\n"


def read_one(**changes: str) -> ImportedRun:
    (run,) = runs(read("tokio", csv_row(**changes)))
    return run


def test_the_start_time_of_darshan_is_used() -> None:
    run = read_one()
    assert (run.slot.timestamp(), run.seconds) == (1487381283.0, 8.0)
    assert [(stage.name, stage.seconds) for stage in run.stages] == [("compute", 8.0)]


@pytest.mark.parametrize(
    ("read_bytes", "read_files", "write_files", "mode"),
    [("0", "0", "512", "fpp-write"), ("0", "0", "1", "shared-write"), ("9e12", "1", "2", "shared-read"),
     ("9e12", "512", "1", "fpp-read")],
)  # fmt: skip
def test_the_mode_of_ior_follows_from_bytes_and_number_of_files(
    read_bytes: str, read_files: str, write_files: str, mode: str
) -> None:
    run = read_one(
        darshan_biggest_read_api_bytes=read_bytes,
        darshan_biggest_read_api_files=read_files,
        darshan_biggest_write_api_files=write_files,
    )
    assert run.series == f"alpha-old-fs1-ior-{mode}"
    assert (run.site, run.resource) == ("alpha", "alpha-old-fs1")


def test_other_applications_have_the_name_of_their_program() -> None:
    assert (
        read_one(darshan_app="/projects/bin/hacc_io_read", _file_system="mira-fs1").series
        == "mira-fs1-hacc_io_read"
    )


def test_rows_without_a_file_system_are_skipped() -> None:
    assert skipped(read("tokio", csv_row(_file_system=""))) == ["the file system is unknown"]


def test_traffic_without_samples_is_no_value() -> None:
    unseen = metrics(read_one(fs_tot_bytes_read="0", fs_frac_missing="1.0"))
    assert "file_system.read.bytes" not in unseen
    values = metrics(read_one(fs_tot_bytes_read="7e9", fs_frac_missing="0.25", fs_ave_mds_cpu="12.5"))
    assert values["file_system.read.bytes"] == (7e9, "bytes")
    assert values["file_system.metadata_cpu"] == (0.125, "ratio")


def test_fullness_is_a_ratio_for_every_site() -> None:
    nersc = metrics(read_one(fshealth_ost_most_full_pct="53.0", fshealth_ost_count="248"))
    alcf = metrics(read_one(fshealth_ost_most_full_pct="0.53"))
    for full, unit in (nersc["file_system.fullest"], alcf["file_system.fullest"]):
        assert full == pytest.approx(0.53)
        assert unit == "ratio"


def test_rates_are_bytes_per_second() -> None:
    assert metrics(read_one(darshan_agg_perf_by_slowest_posix="2.5")) == {
        "io.bytes_per_second": (2.5 * 1024 * 1024, "bytes_per_second")
    }


def test_a_malformed_row_is_reported() -> None:
    assert refused(read("tokio", csv_row(darshan_walltime="-1"))) == [
        "line 2: darshan_walltime: expected 0 to 3.2e+09 seconds, got '-1'"
    ]
    with pytest.raises(Unreadable, match="expected a column '_file_system'; there are time, value"):
        read("tokio", "time,value\n1,2\n")


def rows_of(name: str) -> list[dict[str, str]]:
    """Return all rows of a file; Cori's header lacks the name of its first column."""
    header, *rows = csv.reader(lines_of(name))
    names = ["", *header] if len(rows[0]) == len(header) + 1 else header
    return [dict(zip(names, row, strict=True)) for row in rows]


@needs_shared_data
def test_a_year_on_mira_is_eight_series() -> None:
    items = read_shared("tokio", MIRA)
    imported, rows = runs(items), rows_of(MIRA)
    assert len(items) == len(imported) == len(rows) == 2533
    assert [run.slot.timestamp() for run in imported] == [float(row["darshan_start_time"]) for row in rows]
    assert sum(run.seconds for run in imported) == sum(float(row["darshan_walltime"]) for row in rows)
    assert Counter(run.series for run in imported) == {
        "mira-fs1-dbscan_read": 296,
        "mira-fs1-hacc_io_read": 311,
        "mira-fs1-hacc_io_write": 329,
        "mira-fs1-ior-fpp-read": 313,
        "mira-fs1-ior-fpp-write": 332,
        "mira-fs1-ior-shared-read": 315,
        "mira-fs1-ior-shared-write": 333,
        "mira-fs1-vpicio_uni": 304,
    }
    assert all(0.4 < metrics(run).get("file_system.fullest", (0.5, ""))[0] < 0.7 for run in imported)


@pytest.fixture(scope="module")
def cori() -> list[Item]:
    return read_shared("tokio", CORI)


@needs_shared_data
def test_a_year_on_cori_is_sixteen_series_without_the_burst_buffer(cori: list[Item]) -> None:
    imported, rows = runs(cori), [row for row in rows_of(CORI) if row["_file_system"]]
    assert not refused(cori)
    assert (len(skipped(cori)), len(imported), len(rows)) == (6025, 5207, 5207)
    assert sum(run.seconds for run in imported) == sum(float(row["darshan_walltime"]) for row in rows)
    assert len({run.series for run in imported}) == 16
    assert len({(run.series, run.slot) for run in imported}) == 5207


@needs_shared_data
def test_values_and_times_equal_the_input_of_the_original_nws(cori: list[Item]) -> None:
    """The driver of the original NWS read the same file: read_one of its eight series is read_one of ours."""
    golden = csv.DictReader(lines_of("nws-golden/nws-2.0.5-oracle.csv.gz"))
    case = "tokio-cori-haswell-hacc_io_write-walltime"
    wanted = [(float(row["time"]), float(row["value"])) for row in golden if row["case"] == case]
    ours = [run for run in runs(cori) if run.series == "cori-haswell-cscratch-hacc_io_write"]
    assert sorted((run.slot.timestamp(), run.seconds) for run in ours) == sorted(wanted)
