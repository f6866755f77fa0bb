"""A year of I/O benchmarks: what the columns mean, and what they only seem to."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from monitor.imports.formats.base import Item, Measured, Unreadable
from tests.monitor.imports.formats.reading import (
    left_out,
    lines_of,
    metrics,
    needs_shared_data,
    read,
    read_shared,
    refused,
    runs,
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


def written(**changes: str) -> str:
    row = {**ROW, **changes}
    return f"{','.join(row)}\n{','.join(row.values())}\n"


def one(**changes: str) -> Measured:
    (run,) = runs(read("tokio", written(**changes)))
    return run


def test_the_time_of_darshan_counts_and_not_that_of_the_wrong_zone() -> None:
    run = one()
    assert (run.slot.timestamp(), run.seconds) == (1487381283.0, 8.0)
    assert [(stage.name, stage.seconds) for stage in run.stages] == [("compute", 8.0)]


@pytest.mark.parametrize(
    ("read_bytes", "read_files", "write_files", "mode"),
    [("0", "0", "512", "fpp-write"), ("0", "0", "1", "shared-write"), ("9e12", "1", "2", "shared-read"),
     ("9e12", "512", "1", "fpp-read")],
)  # fmt: skip
def test_the_mode_of_ior_is_the_way_of_most_bytes_and_how_many_files_they_are_in(
    read_bytes: str, read_files: str, write_files: str, mode: str
) -> None:
    run = one(
        darshan_biggest_read_api_bytes=read_bytes,
        darshan_biggest_read_api_files=read_files,
        darshan_biggest_write_api_files=write_files,
    )
    assert run.series == f"alpha-old-fs1-ior-{mode}"
    assert (run.site, run.resource) == ("alpha", "alpha-old-fs1")


def test_another_application_is_called_by_the_name_of_its_program() -> None:
    assert (
        one(darshan_app="/projects/bin/hacc_io_read", _file_system="mira-fs1").series
        == "mira-fs1-hacc_io_read"
    )


def test_rows_without_a_file_system_are_left_out() -> None:
    assert left_out(read("tokio", written(_file_system=""))) == ["no file system is named"]


def test_what_monitors_did_not_see_is_not_taken_for_nothing() -> None:
    unseen = metrics(one(fs_tot_bytes_read="0", fs_frac_missing="1.0"))
    assert "file_system.read.bytes" not in unseen
    seen = metrics(one(fs_tot_bytes_read="7e9", fs_frac_missing="0.25", fs_ave_mds_cpu="12.5"))
    assert seen["file_system.read.bytes"] == (7e9, "bytes")
    assert seen["file_system.metadata_cpu"] == (0.125, "ratio")


def test_how_full_disks_are_is_a_ratio_whichever_site_wrote_it() -> None:
    nersc = metrics(one(fshealth_ost_most_full_pct="53.0", fshealth_ost_count="248"))
    alcf = metrics(one(fshealth_ost_most_full_pct="0.53"))
    for full, unit in (nersc["file_system.fullest"], alcf["file_system.fullest"]):
        assert full == pytest.approx(0.53)
        assert unit == "ratio"


def test_rates_are_bytes_a_second() -> None:
    assert metrics(one(darshan_agg_perf_by_slowest_posix="2.5")) == {
        "io.bytes_per_second": (2.5 * 1024 * 1024, "bytes_per_second")
    }


def test_a_row_that_cannot_be_read_is_named() -> None:
    assert refused(read("tokio", written(darshan_walltime="-1"))) == [
        "line 2: darshan_walltime: expected 0 to 3.2e+09 seconds, got '-1'"
    ]
    with pytest.raises(Unreadable, match="expected a column '_file_system'; there are time, value"):
        read("tokio", "time,value\n1,2\n")


def rows_of(name: str) -> list[dict[str, str]]:
    """All rows of a file, as pandas reads them: Cori's header lacks the name of its first column."""
    header, *rows = csv.reader(lines_of(name))
    names = ["", *header] if len(rows[0]) == len(header) + 1 else header
    return [dict(zip(names, row, strict=True)) for row in rows]


@needs_shared_data
def test_a_year_on_mira_is_eight_series() -> None:
    items = read_shared("tokio", MIRA)
    found, rows = runs(items), rows_of(MIRA)
    assert len(items) == len(found) == len(rows) == 2533
    assert [run.slot.timestamp() for run in found] == [float(row["darshan_start_time"]) for row in rows]
    assert sum(run.seconds for run in found) == sum(float(row["darshan_walltime"]) for row in rows)
    assert Counter(run.series for run in found) == {
        "mira-fs1-dbscan_read": 296,
        "mira-fs1-hacc_io_read": 311,
        "mira-fs1-hacc_io_write": 329,
        "mira-fs1-ior-fpp-read": 313,
        "mira-fs1-ior-fpp-write": 332,
        "mira-fs1-ior-shared-read": 315,
        "mira-fs1-ior-shared-write": 333,
        "mira-fs1-vpicio_uni": 304,
    }
    assert all(0.4 < metrics(run).get("file_system.fullest", (0.5, ""))[0] < 0.7 for run in found)


@pytest.fixture(scope="module")
def cori() -> list[Item]:
    return read_shared("tokio", CORI)


@needs_shared_data
def test_a_year_on_cori_is_sixteen_series_without_the_burst_buffer(cori: list[Item]) -> None:
    found, rows = runs(cori), [row for row in rows_of(CORI) if row["_file_system"]]
    assert not refused(cori)
    assert (len(left_out(cori)), len(found), len(rows)) == (6025, 5207, 5207)
    assert sum(run.seconds for run in found) == sum(float(row["darshan_walltime"]) for row in rows)
    assert len({run.series for run in found}) == 16
    assert len({(run.series, run.slot) for run in found}) == 5207


@needs_shared_data
def test_values_and_times_are_those_that_the_original_nws_forecast(cori: list[Item]) -> None:
    """Its driver read the same file: one of its eight series is one of ours."""
    golden = csv.DictReader(lines_of("nws-golden/nws-2.0.5-oracle.csv.gz"))
    case = "tokio-cori-haswell-hacc_io_write-walltime"
    wanted = [(float(row["time"]), float(row["value"])) for row in golden if row["case"] == case]
    ours = [run for run in runs(cori) if run.series == "cori-haswell-cscratch-hacc_io_write"]
    assert sorted((run.slot.timestamp(), run.seconds) for run in ours) == sorted(wanted)
