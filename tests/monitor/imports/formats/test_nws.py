"""What the Network Weather Service measured: lines of a time and a value."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.imports.formats.base import InvalidOption
from tests.monitor.imports.formats.reading import DATA, left_out, metrics, read, refused, runs

BANDWIDTH = (DATA / "bandwidth.nws").read_text()


def test_a_resource_says_name_and_unit() -> None:
    found = runs(read("nws", BANDWIDTH, resource="bandwidthTcp"))
    assert [metrics(run) for run in found] == [
        {"bandwidth": (1e6, "bytes_per_second")},
        {"bandwidth": (pytest.approx(940_000.0), "bytes_per_second")},
    ]
    assert found[1].slot == datetime(2006, 3, 1, 12, 2, 0, 500_000, tzinfo=UTC)
    assert {run.series for run in found} == {""}


def test_lines_that_cannot_be_read_are_named_and_comments_are_none() -> None:
    items = read("nws", BANDWIDTH)
    assert refused(items) == [
        "line 5: value: expected a finite number, got 'not_available'",
        "line 6: line: expected a time and a value, got '1141214760 8.16 0.2'",
    ]
    assert left_out(items) == ["a comment"]


def test_where_no_resource_says_it_options_do() -> None:
    (run,) = runs(read("nws", "1141214400 20\n", metric="ping time", unit="ms"))
    assert metrics(run) == {"ping_time": (0.02, "seconds")}
    with pytest.raises(InvalidOption, match="--resource: expected one of availableCpu"):
        read("nws", "", resource="weather")


@pytest.mark.parametrize("value", ["nan", "inf", "1_000", "0x10", "1e999", ""])
def test_what_only_looks_like_a_number_is_none(value: str) -> None:
    assert not runs(read("nws", f"1141214400 {value}\n"))


@pytest.mark.parametrize("time", ["-5", "1e30", "99999999999", "noon"])
def test_a_time_that_no_depot_holds_is_named(time: str) -> None:
    (message,) = refused(read("nws", f"{time} 1\n"))
    assert message.startswith("line 1: time: expected")
