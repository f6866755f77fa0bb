"""Responses of Prometheus to range queries: one series per label set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitor.runs.imports.formats.base import Unreadable
from tests.monitor.runs.imports.formats.reading import DATA, metrics, read, refused, runs, skipped

RANGE = (DATA / "range.json").read_text()


def answer(*results: dict[str, Any], kind: str = "matrix") -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": list(results)}})


def test_each_label_set_is_a_series_with_its_labels_as_parameters() -> None:
    first, second, other = runs(read("prometheus", RANGE))
    assert first.series == second.series != other.series
    assert first.parameters == {
        "__name__": "gridftp_transfer_seconds",
        "instance": "se1.example.org:2811",
        "vo": "atlas",
    }
    assert metrics(first) == metrics(second) == {"gridftp_transfer_seconds": (12.5, "seconds")}
    assert first.slot.timestamp() == 1772366400


def test_values_that_are_not_numbers_are_skipped() -> None:
    items = read("prometheus", RANGE)
    assert skipped(items) == ["not a number", "native histograms are not supported"]
    assert refused(items) == ["result 1, value 4: value: expected a finite number, got 'x'"]


def test_labels_that_differ_only_in_special_characters_give_different_series() -> None:
    results = [{"metric": {"path": path}, "values": [[1, "1"]]} for path in ("/a", "/a/", "a", "-a")]
    assert len({run.series for run in runs(read("prometheus", answer(*results)))}) == 4


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("node_memory_bytes", "bytes"),
        ("cpu_seconds_total", "seconds"),
        ("requests_total", "count"),
        ("up", "count"),
        ("full_ratio", "ratio"),
    ],
)
def test_units_follow_from_the_suffix_of_the_name(name: str, unit: str) -> None:
    (run,) = runs(read("prometheus", answer({"metric": {"__name__": name}, "values": [[1, "1"]]})))
    assert metrics(run) == {name: (1.0, unit)}


def test_options_supply_name_unit_and_resource() -> None:
    data = answer({"metric": {"instance": "se1"}, "values": [[1, "3"]]})
    (run,) = runs(read("prometheus", data, metric="delay", unit="ms", resource_label="instance"))
    assert metrics(run) == {"delay": (0.003, "seconds")}
    assert run.resource == "se1"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ('{"status": "error", "error": "query timed out"}', "got status 'error'"),
        (answer(kind="vector"), "resultType: expected 'matrix', from a range query, got 'vector'"),
        (answer({"values": [], "metric": {}}), "result 1: expected metric before values"),
        (answer({"metric": []}), "result 1: metric: expected an object of at most 100 labels"),
        ('{"status": "success"}', "with data, got none"),
        ('[{"ts": 1, "val": 2}]', "expected an object: the response of a query; got an array"),
        ('{"data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "1"', "truncated"),
        ('{"other": ' + "[" * 200, "at most 32 deep"),
        ('{"data": {"result": "' + "x" * 2_000_000, "a value at least every 1000000 bytes"),
    ],
)
def test_data_other_than_a_matrix_are_unreadable(data: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read("prometheus", data)
