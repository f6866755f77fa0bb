"""Plain CSV: options say what its columns are."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import UTC, datetime

import pytest

from monitor.importers.base import InvalidOption, Unreadable
from tests.monitor.importers.reading import (
    left_out,
    lines_of,
    metrics,
    needs_shared_data,
    read,
    read_shared,
    refused,
    runs,
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
def test_a_time_may_be_written_in_many_ways(time: str, options: dict[str, str]) -> None:
    (run,) = runs(read("csv", f"time,value\n{time},1\n", **options))
    assert run.slot == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_how_long_it_took_makes_a_total_and_says_when_it_was_known() -> None:
    (run,) = runs(read("csv", "time,value,took\n0,1,90\n", seconds_column="took"))
    assert run.seconds == 90.0
    assert [(stage.name, stage.category, stage.seconds) for stage in run.stages] == [
        ("compute", "compute", 90.0)
    ]


def test_durations_alone_are_runs_as_well() -> None:
    (run,) = runs(read("csv", "time,took\n0,90\n", seconds_column="took", value_columns=""))
    assert run.seconds == 90.0
    assert [stage.name for stage in run.stages] == ["compute"]
    assert not run.metrics


def test_a_column_may_name_the_series_and_another_the_outcome() -> None:
    found = runs(
        read(
            "csv",
            "time,value,vm,end\n0,1,a b,passed\n0,2,c,failed\n",
            series_column="vm",
            outcome_column="end",
        )
    )
    assert [(run.parameters, run.outcome) for run in found] == [
        ({"vm": "a b"}, "passed"),
        ({"vm": "c"}, "failed"),
    ]
    assert found[0].series.startswith("a-b-")
    assert found[1].series == "c"


def test_without_a_header_columns_are_numbers() -> None:
    (run,) = runs(read("csv", "5;0\n", time_column="2", value_columns="1", header="no", delimiter=";"))
    assert metrics(run) == {"1": (5.0, "count")}


def test_what_cannot_be_read_is_named_and_an_empty_field_is_no_value() -> None:
    items = read("csv", "time,value\n0,1\n\n2,3\nsoon,4\n5\n6,x\n7,\n8,9\n")
    assert len(runs(items)) == 3
    assert [message.partition(",")[0] for message in refused(items)] == [
        "line 5: time: expected a time in seconds since 1970",
        "line 6: line: expected 2 fields as in the first line",
        "line 7: value: expected a finite number",
    ]
    assert left_out(items) == ["nothing was measured"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"units": "s,s"}, "--units: expected one or 1 of them, got 2"),
        ({"delimiter": "::"}, "--delimiter: expected one character, or 'tab'"),
        ({"timezone": "Mars/Olympus"}, "--timezone: expected a zone such as UTC"),
        ({"timezone": "../etc/passwd"}, "--timezone: expected a zone such as UTC"),
        ({"value_columns": ""}, "--value-columns: expected some, where there is no --seconds-column"),
        ({"value_columns": "a b,a_b"}, "--value-columns: expected columns with different names"),
        ({"header": "maybe"}, "--header: expected one of yes, no, got 'maybe'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidOption, match=why):
        read("csv", "", **options)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("when,value\n", "line 1: expected a column 'time'; there are when, value"),
        ("time,value,value\n", "line 1: expected columns with different names, got 'value' more than once"),
        ("time,value\n" + "1" * 1_100_000, "line 2: expected at most 1000000 bytes"),
    ],
)
def test_what_has_not_the_columns_is_refused_as_a_whole(data: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read("csv", data)


@needs_shared_data
def test_series_that_the_original_nws_was_asked_for_are_read_from_its_answers() -> None:
    name = "nws-golden/nws-2.0.5-oracle.csv.gz"
    rows = list(csv.DictReader(lines_of(name)))
    found = runs(read_shared("csv", name, series_column="case"))
    assert Counter(run.parameters["case"] for run in found) == Counter(row["case"] for row in rows)
    assert [metrics(run)["value"][0] for run in found] == [float(row["value"]) for row in rows]
