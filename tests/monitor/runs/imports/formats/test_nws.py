"""Import of measurements of the Network Weather Service: lines with a time and a value."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.runs.imports.formats.base import InvalidOption
from tests.monitor.runs.imports.formats.reading import DATA, metrics, read, refused, runs, skipped

BANDWIDTH = (DATA / "bandwidth.nws").read_text()


def test_a_resource_determines_name_and_unit() -> None:
    imported = runs(read("nws", BANDWIDTH, resource="bandwidthTcp"))
    assert [metrics(run) for run in imported] == [
        {"bandwidth": (1e6, "bytes_per_second")},
        {"bandwidth": (pytest.approx(940_000.0), "bytes_per_second")},
    ]
    assert imported[1].slot == datetime(2006, 3, 1, 12, 2, 0, 500_000, tzinfo=UTC)
    assert {run.series for run in imported} == {""}


def test_malformed_lines_are_reported_and_comments_skipped() -> None:
    items = read("nws", BANDWIDTH)
    assert refused(items) == [
        "line 5: value: expected a finite number, got 'not_available'",
        "line 6: line: expected a time and a value, got '1141214760 8.16 0.2'",
    ]
    assert skipped(items) == ["a comment"]


def test_without_a_resource_options_give_name_and_unit() -> None:
    (run,) = runs(read("nws", "1141214400 20\n", metric="ping time", unit="ms"))
    assert metrics(run) == {"ping_time": (0.02, "seconds")}
    with pytest.raises(InvalidOption, match="--resource: expected one of availableCpu"):
        read("nws", "", resource="weather")


@pytest.mark.parametrize("value", ["nan", "inf", "1_000", "0x10", "1e999", ""])
def test_text_that_only_resembles_a_number_is_refused(value: str) -> None:
    assert not runs(read("nws", f"1141214400 {value}\n"))


@pytest.mark.parametrize("time", ["-5", "1e30", "99999999999", "noon"])
def test_a_time_outside_the_supported_range_is_malformed(time: str) -> None:
    (message,) = refused(read("nws", f"{time} 1\n"))
    assert message.startswith("line 1: time: expected")
