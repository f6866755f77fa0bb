"""The JSON Schema of reports accepts what the server accepts from programs outside, and refuses the rest."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs.ingest.report_schema import examples, schema
from monitor.runs.ingest.short_reports import ReportedSeries, ShortReport, complete, read
from reporters import report as wire

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

DOCS = Path(__file__).resolve().parents[4] / "docs"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SERIES = ReportedSeries(1, "backup", "home", {"level": 3}, {"host": ("alpha",)})
TIME = "2026-03-01T11:59:00Z"

# A whole and a short report with every field, whose parts the tests leave out and replace.
SHORT: dict[str, Any] = {
    "version": 1,
    "series": "backup",
    "rid": "job-1",
    "reporter": "home",
    "probe": {"name": "reported", "version": "2", "sha256": ""},
    "parameters": {"level": 3},
    "started_at": TIME,
    "seconds": 12.5,
    "outcome": "failed",
    "reason": "no space",
    "stages": [{"name": "dump", "category": "compute", "seconds": 2, "started_after_seconds": 0}],
    "metrics": [{"name": "backup.bytes", "value": 7.5e9, "unit": "bytes"}],
    "failure": {"stage": "dump", "resource": "alpha", "message": "no", "exit_status": 1, "stderr_tail": ""},
    "log": [{"level": "info", "seconds": 0.0, "text": "began"}, "ended"],
    "environment": {"hostname": "alpha", "kernel": "Linux", "python": "", "tools": {"tar": "1.34"}},
    "clock": {"sent_at": TIME, "synchronised": True},
    "bindings": {"host": ["alpha"]},
    "usage": {"alpha": {"bytes_sent": 1, "bytes_received": 2, "cpu_seconds": 3.5}},
}
OTHERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([-1.5, 1e300]),
    st.sampled_from(
        ["", "x", "\0", "é" * 51, "x" * 187, "x" * 201, TIME, "2026-03-01", "passed", "compute", "1"]
    ),
    st.sampled_from([[], {}, ["x"], [["x"]], {"x": "y"}, {"": "y"}, {"x" * 201: ["y"]}, {"text": "t"}, [{}]]),
)
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every value in *value*."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*place, key))


PLACES = list(places(SHORT))


def inside(value: Any, place: Place) -> Any:
    """Return the value at *place* in *value*; None if an earlier change has removed it."""
    for key in place:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A report with up to three of its values left out, replaced, or added beside."""
    document: dict[str, Any] = json.loads(json.dumps(SHORT))
    for _ in range(draw(st.integers(0, 3))):
        *place, key = draw(st.sampled_from(PLACES))
        change = draw(st.sampled_from(["omit", "replace", "add"]))
        parent = inside(document, tuple(place))
        if isinstance(parent, list):
            parent[:1] = [] if change == "omit" else [draw(OTHERS)]
        elif isinstance(parent, dict) and change == "omit":
            parent.pop(key, None)
        elif isinstance(parent, dict):
            new = draw(st.sampled_from(["ended_at", "slot", "rid", "note", "text"]))
            parent[key if change == "replace" else new] = draw(OTHERS)
    return document


@cache
def validator() -> Validator:
    from jsonschema import Draft202012Validator  # takes two seconds: not when tests are collected

    return Draft202012Validator(schema())


def is_accepted(document: dict[str, Any]) -> bool:
    try:
        report = read(json.dumps(document).encode())
        if isinstance(report, ShortReport):
            complete(report, SERIES, report.slot or NOW, NOW)
    except wire.ReportError:
        return False
    return True


@given(documents())
def test_the_schema_accepts_what_the_server_accepts(document: dict[str, Any]) -> None:
    assert validator().is_valid(document) == is_accepted(document), document


@pytest.mark.parametrize("example", examples())
def test_the_examples_are_valid_and_accepted(example: dict[str, Any]) -> None:
    validator().validate(example)
    assert is_accepted(example)


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("value", [None, True, 17, "\0", "x" * 300, [17], {"17": 17}], ids=str)
def test_a_replaced_field_is_judged_alike(name: str, value: Any) -> None:
    document = {**SHORT, name: value}
    assert validator().is_valid(document) == is_accepted(document)


def test_a_whole_report_of_a_reporter_is_valid() -> None:
    whole = {**SHORT, "slot": TIME, "run": str(wire.run_id("backup", NOW)), "log": []}
    del whole["rid"]
    validator().validate(whole)
    assert not is_accepted(whole)  # the id is that of another slot, which the schema cannot say
    del whole["run"]
    validator().validate(whole)
    assert isinstance(read(json.dumps(whole).encode()), wire.Report)


def test_the_schema_is_published_and_served() -> None:
    validator().check_schema(schema())
    published = (DOCS / "report.schema.json").read_text(encoding="utf-8")
    with redirect_stdout(io.StringIO()) as printed:
        call_command("report_schema", stdout=printed)
    assert printed.getvalue() == published, "write docs/report.schema.json: manage.py report_schema"
    served = Client().get("/api/v1/reports/schema")
    assert served["content-type"] == "application/schema+json"
    assert served.json() == json.loads(published) == schema()
