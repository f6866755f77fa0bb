"""Answers of Prometheus to range queries: a series for each label set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitor.imports.formats.base import Unreadable
from tests.monitor.imports.formats.reading import DATA, left_out, metrics, read, refused, runs

RANGE = (DATA / "range.json").read_text()


def answer(*results: dict[str, Any], kind: str = "matrix") -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": list(results)}})


def test_each_label_set_is_a_series_whose_parameters_are_its_labels() -> None:
    first, second, other = runs(read("prometheus", RANGE))
    assert first.series == second.series != other.series
    assert first.parameters == {
        "__name__": "gridftp_transfer_seconds",
        "instance": "se1.example.org:2811",
        "vo": "atlas",
    }
    assert metrics(first) == metrics(second) == {"gridftp_transfer_seconds": (12.5, "seconds")}
    assert first.slot.timestamp() == 1772366400


def test_what_is_no_number_there_is_none_here() -> None:
    items = read("prometheus", RANGE)
    assert left_out(items) == ["no number", "native histograms are not read"]
    assert refused(items) == ["result 1, value 4: value: expected a finite number, got 'x'"]


def test_labels_that_differ_in_what_no_name_can_hold_make_different_series() -> None:
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
def test_units_are_as_names_end(name: str, unit: str) -> None:
    (run,) = runs(read("prometheus", answer({"metric": {"__name__": name}, "values": [[1, "1"]]})))
    assert metrics(run) == {name: (1.0, unit)}


def test_options_say_what_the_result_does_not() -> None:
    data = answer({"metric": {"instance": "se1"}, "values": [[1, "3"]]})
    (run,) = runs(read("prometheus", data, metric="delay", unit="ms", resource_label="instance"))
    assert metrics(run) == {"delay": (0.003, "seconds")}
    assert run.resource == "se1"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ('{"status": "error", "error": "query timed out"}', "got status 'error'"),
        (answer(kind="vector"), "resultType: expected 'matrix', a range query's, got 'vector'"),
        (answer({"values": [], "metric": {}}), "result 1: expected metric before values"),
        (answer({"metric": []}), "result 1: metric: expected an object of at most 100 labels"),
        ('{"status": "success"}', "with data, got none"),
        ('[{"ts": 1, "val": 2}]', "expected an object: the answer to a query; got an array"),
        ('{"data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "1"', "cut off"),
        ('{"other": ' + "[" * 200, "at most 32 deep"),
        ('{"data": {"result": "' + "x" * 2_000_000, "a value at least every 1000000 bytes"),
    ],
)
def test_what_is_no_matrix_is_refused(data: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read("prometheus", data)
