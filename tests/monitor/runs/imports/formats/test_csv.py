"""Plain CSV: options name the columns."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import UTC, datetime

import pytest

from monitor.runs.imports.formats.base import InvalidOption, Unreadable
from tests.monitor.runs.imports.formats.reading import (
    AZURE,
    LANL,
    MACHINES,
    OUTAGES,
    lines_of,
    member,
    metrics,
    needs_shared_data,
    read,
    read_shared,
    refused,
    runs,
    skipped,
)


def test_values_are_metrics_by_the_names_of_their_columns_in_si_units() -> None:
    (run,) = runs(
        read("csv", "time,rate up,lat\n1772366400,2,5\n", value_columns="rate up,lat", units="MiB/s,ms")
    )
    assert metrics(run) == {"rate_up": (2 * 1024.0**2, "bytes_per_second"), "lat": (0.005, "seconds")}
    assert run.slot == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "options"),
    [
        ("2026-03-01T13:00:00+01:00", {}),
        ("2026-03-01 12:00", {}),
        ("2026-03-01 07:00", {"timezone": "America/New_York"}),
        ("01.03.2026 12.00", {"time_format": "%d.%m.%Y %H.%M"}),
        ("1772366400.0", {}),
    ],
)
def test_times_are_read_in_many_formats(time: str, options: dict[str, str]) -> None:
    (run,) = runs(read("csv", f"time,value\n{time},1\n", **options))
    assert run.slot == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_duration_becomes_a_total_and_delays_known_at() -> None:
    (run,) = runs(read("csv", "time,value,took\n0,1,90\n", seconds_column="took"))
    assert run.seconds == 90.0
    assert [(stage.name, stage.category, stage.seconds) for stage in run.stages] == [
        ("compute", "compute", 90.0)
    ]


def test_durations_without_values_are_runs() -> None:
    (run,) = runs(read("csv", "time,took\n0,90\n", seconds_column="took", value_columns=""))
    assert run.seconds == 90.0
    assert [stage.name for stage in run.stages] == ["compute"]
    assert not run.metrics


def test_columns_select_the_series_and_the_outcome() -> None:
    imported = runs(
        read(
            "csv",
            "time,value,vm,end\n0,1,a b,passed\n0,2,c,failed\n",
            series_column="vm",
            outcome_column="end",
        )
    )
    assert [(run.parameters, run.outcome) for run in imported] == [
        ({"vm": "a b"}, "passed"),
        ({"vm": "c"}, "failed"),
    ]
    assert imported[0].series.startswith("a-b-")
    assert imported[1].series == "c"


def test_durations_are_converted_to_seconds() -> None:
    (run,) = runs(read("csv", "time,value,took\n0,1,1.5\n", seconds_column="took", seconds_unit="min"))
    assert run.seconds == 90.0


def test_end_times_give_the_elapsed_time_across_daylight_saving() -> None:
    rows = (
        "time,end\n2026-03-08 01:00,2026-03-08 04:00\n2026-03-09 01:00,\n2026-03-09 01:00,2026-03-08 01:00\n"
    )
    items = read("csv", rows, end_column="end", value_columns="", timezone="America/New_York")
    assert [run.seconds for run in runs(items)] == [7200.0]
    assert skipped(items) == ["nothing was measured"]
    assert refused(items) == [
        "line 4: end: expected an end that is not before the start, got '2026-03-08 01:00'"
    ]


def test_several_columns_select_distinct_series() -> None:
    rows = "time,value,a,b\n0,1,x,y\n0,1,x-y,z\n0,1,x,y-z\n0,1,,z\n0,1,z,\n0,1,,\n"
    items = read("csv", rows, series_column="a,b")
    names = [run.series for run in runs(items)]
    assert names[0] == "x-y"
    assert len(set(names)) == 5
    assert runs(items)[1].parameters == {"a": "x-y", "b": "z"}
    assert refused(items) == ["line 7: a,b: expected the name of a series, got ''"]


def test_an_outcome_applies_to_all_runs_and_columns_give_the_reasons() -> None:
    rows = "time,value,disk,net\n0,1,full,\n1,1,,\n2,1,slow,down\n"
    imported = runs(read("csv", rows, outcome="failed", reason_columns="disk,net"))
    assert [(run.outcome, run.reason) for run in imported] == [
        ("failed", "disk: full"),
        ("failed", ""),
        ("failed", "disk: slow; net: down"),
    ]
    (run,) = runs(read("csv", "time,value,why\n0,1,bad luck\n", reason_columns="why"))
    assert run.reason == "bad luck"


def test_runs_in_the_same_second_are_kept_apart_on_request() -> None:
    rows = "time,value\n60,1\n60,2\n60.5,3\n"
    imported = runs(read("csv", rows, apart="yes"))
    assert [run.slot.timestamp() for run in imported] == [60.000002, 60.000003, 60.5]


def test_without_a_header_columns_are_numbered() -> None:
    (run,) = runs(read("csv", "5;0\n", time_column="2", value_columns="1", header="no", delimiter=";"))
    assert metrics(run) == {"1": (5.0, "count")}


def test_malformed_rows_are_reported_and_an_empty_field_is_no_value() -> None:
    items = read("csv", "time,value\n0,1\n\n2,3\nsoon,4\n5\n6,x\n7,\n8,9\n")
    assert len(runs(items)) == 3
    assert [message.partition(",")[0] for message in refused(items)] == [
        "line 5: time: expected a time in seconds since 1970",
        "line 6: line: expected 2 fields",
        "line 7: value: expected a finite number",
    ]
    assert skipped(items) == ["nothing was measured"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"units": "s,s"}, "--units: expected 1 unit or 1 units, got 2"),
        ({"delimiter": "::"}, "--delimiter: expected one character, or 'tab'"),
        ({"timezone": "Mars/Olympus"}, "--timezone: expected a time zone such as UTC"),
        ({"timezone": "../etc/passwd"}, "--timezone: expected a time zone such as UTC"),
        ({"time_column": ""}, "--time-column: expected a column"),
        ({"value_columns": ""}, "--value-columns: expected columns, as there is neither --seconds-column"),
        ({"seconds_column": "a", "end_column": "b"}, "--end-column: cannot be combined with --sec"),
        ({"seconds_unit": "MB"}, "--seconds-unit: expected a unit of time, got 'MB'"),
        ({"outcome": "good"}, "--outcome: expected one of passed"),
        ({"value_columns": "a b,a_b"}, "--value-columns: expected columns with different names"),
        ({"header": "maybe"}, "--header: expected one of yes, no, got 'maybe'"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidOption, match=why):
        read("csv", "", **options)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("when,value\n", "line 1: expected a column 'time'; there are when, value"),
        ("time,value,value\n", "line 1: expected distinct column names, got 'value' more than once"),
        ("time,value\n" + "1" * 1_100_000, "line 2: expected a text with lines of at most 1000000 bytes"),
    ],
)
def test_a_file_without_the_columns_is_unreadable(data: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read("csv", data)


@needs_shared_data
def test_golden_output_of_the_original_nws_is_read() -> None:
    name = "nws-golden/nws-2.0.5-oracle.csv.gz"
    rows = list(csv.DictReader(lines_of(name)))
    imported = runs(read_shared("csv", name, series_column="case"))
    assert Counter(run.parameters["case"] for run in imported) == Counter(row["case"] for row in rows)
    assert [metrics(run)["value"][0] for run in imported] == [float(row["value"]) for row in rows]


@needs_shared_data
def test_golden_output_of_the_original_wait_bound_is_read() -> None:
    name = "nws-golden/bmbp_ts-oracle.csv.gz"
    rows = list(csv.DictReader(lines_of(name)))
    items = read_shared("csv", name, series_column="case", units="s")
    assert not refused(items)
    assert [(run.slot.timestamp(), metrics(run)["value"]) for run in runs(items)] == [
        (float(row["time"]), (float(row["value"]), "seconds")) for row in rows
    ]


@needs_shared_data
def test_ten_years_of_outages_are_failed_runs_of_nodes() -> None:
    """Times are local to New Mexico, down times are elapsed minutes. The two differ twice, in the
    hour that is repeated at the end of daylight saving time: the data do not say which of both is meant."""
    rows = list(csv.DictReader(lines_of(LANL)))
    items = read_shared("csv", LANL, most=None, **OUTAGES)
    imported = runs(items)
    assert (len(imported), refused(items), skipped(items)) == (23_739, [], [])
    counted = [60.0 * float(row["Down Time"]) for row in rows]
    assert sum(abs(run.seconds - seconds) > 60 for run, seconds in zip(imported, counted, strict=True)) == 2
    assert len({run.series for run in imported}) == 3577
    assert len({(run.series, run.slot) for run in imported}) == len(imported)
    assert {run.outcome for run in imported} == {"failed"}
    assert Counter(run.reason.partition(":")[0] for run in imported) == {
        "Hardware": 14_341, "Software": 5361, "Undetermined": 2652, "": 453, "Network": 421,
        "Facilities": 362, "Human Error": 149,
    }  # fmt: skip


@needs_shared_data
@pytest.mark.parametrize(
    ("file", "unit", "count", "metric_unit"),
    [("test_suite=Sysbench/test_name=Test:_RAM__Memory", "MiB/s", 6951, "bytes_per_second"),
     ("test_suite=OSBench/test_name=Test:_Create_Processes", "us", 6949, "seconds"),
     ("test_suite=Redis/test_name=Test:_GET_-_Parallel_Connections:_50", "", 6942, "count")],
)  # fmt: skip
def test_a_year_of_benchmarks_is_one_series_per_virtual_machine(
    file: str, unit: str, count: int, metric_unit: str
) -> None:
    data = member(AZURE, f"vm-noise-data/{file}/", "B8ms/")
    items = read("csv", data, units=unit, **MACHINES)
    rows = list(csv.DictReader(data.decode().splitlines()))
    assert (len(runs(items)), refused(items)) == (count, [])
    assert {run.series for run in runs(items)} == {"0", "1", "2"}
    assert [run.seconds for run in runs(items)] == [float(row["runtime"]) for row in rows]
    assert {metrics(run)["value"][1] for run in runs(items)} == {metric_unit}
