from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reporters.remote.assignment import MAX_BYTES, MAX_SERIES, AssignmentRefused, SiteAssignment, parse
from tests.reporters.remote.assignments import RESOURCE, assignment, series

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def parsed(document: dict[str, Any]) -> SiteAssignment:
    return parse(json.dumps(document), "ncsa")


def test_a_run_has_what_its_series_says_and_only_the_resources_that_it_uses() -> None:
    described = series(
        "gather-ncsa",
        probe="gather",
        parameters={"file_bytes": 5},
        bindings={"sources": ["a"]},
        max_load1=2,
        warm_up_runs=1,
        expected_seconds={"total.seconds": 9.5},
    )
    found = parsed(assignment(described, resources={"a": RESOURCE, "b": {**RESOURCE, "site": "psc"}}))
    run = found.run_of(found.series["gather-ncsa"], NOON)
    assert (run.series, run.slot, run.reporter, run.probe) == ("gather-ncsa", NOON, "ncsa", "gather")
    assert (run.parameters, run.bindings) == ({"file_bytes": 5}, {"sources": ("a",)})
    assert list(run.resources) == ["a"]
    assert run.resources["a"].scratch == "/scratch/grid"
    assert (run.max_load1, run.warm_up_runs, run.expected_seconds) == (2.0, 1, {"total.seconds": 9.5})
    assert found.sites(found.series["gather-ncsa"]) == {"ncsa"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format: expected 1"),
        ({"reporter": "psc"}, "reporter: expected 'ncsa', this reporter, got 'psc'"),
        ({"version": 0}, "version: expected an integer >= 1"),
        ({"capacity": 0}, "capacity: expected an integer >= 1"),
        ({"capacity": 10_000}, "capacity: expected at most 1000"),
        ({"series": None}, "series: expected a list"),
        ({"series": [series(), series()]}, r"series\[1\].name: expected a unique name"),
        ({"series": [series(str(n)) for n in range(MAX_SERIES + 1)]}, "series: expected at most 2000"),
        ({"resources": {"../x": RESOURCE}}, "becomes part of a path"),
        ({"windows": [{}]}, r"windows\[0\].series"),
        ({"issued_at": "yesterday"}, "issued_at: expected a time"),
    ],
)
def test_a_malformed_assignment_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(AssignmentRefused, match=message):
        parsed(assignment(**change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../../etc"}, "name: expected text like"),
        ({"name": "x" * 201}, "name: expected text like"),
        ({"probe": "rm"}, "probe: expected one of batch_queue"),
        ({"probe": "os.path"}, "probe: expected one of"),
        ({"schedule": "99 * * * *"}, "schedule: "),
        ({"timezone": "Mars/Olympus"}, "schedule: time zone"),
        ({"after": "noop-ncsa"}, "after: expected another series"),
        ({"bindings": {"x": ["unknown"]}}, "bindings.x: there is no resource 'unknown'"),
        ({"limit_seconds": 0}, "limit_seconds: expected more than 0"),
        ({"limit_seconds": 1e9}, "limit_seconds: expected at most"),
        ({"warm_up_runs": 1000}, "warm_up_runs: expected at most 100"),
        ({"exclusive": "all"}, "exclusive: expected one of"),
        ({"parameters": []}, "parameters: expected an object"),
        ({"expected_seconds": {"a": -1}}, "expected_seconds.a"),
        ({"expected_seconds": {str(n): 1 for n in range(101)}}, "expected at most 100 metrics"),
    ],
)
def test_a_malformed_series_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(AssignmentRefused, match=message):
        parsed(assignment(series(**change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"scratch": path}, "scratch: expected an absolute path")
            for path in ("", "scratch", "/", "/a/../etc", "/a/..", "/a//b", "/a/", "//a", "/./a", "/a\nb")
        ),
        ({"shell": {}}, "shell.kind: expected one of gram, local, ssh, got None"),
        ({"shell": {"kind": "os"}}, "shell.kind: expected one of"),
        ({"shell": {"kind": ["ssh"]}}, "shell.kind: expected one of"),
        ({"transfer": {"kind": "x"}}, "transfer.kind"),
        ({"batch": {"kind": "x"}}, "batch.kind"),
        ({"batch": []}, "batch: expected an object"),
    ],
)
def test_a_malformed_resource_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(AssignmentRefused, match=message):
        parsed(assignment(series(bindings={}), resources={"a": {**RESOURCE, **change}}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "{" * 50_000, '{"a": 1, "a": 2}', '{"a": "\\u0000"}', "\ud800"]
)
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(AssignmentRefused, match="malformed"):
        parse(text, "ncsa")


def test_a_huge_assignment_is_refused() -> None:
    with pytest.raises(AssignmentRefused, match="too large"):
        parsed(assignment(series(parameters={"x": "x" * MAX_BYTES})))


def test_the_largest_assignment_is_read() -> None:
    found = parsed(assignment(*(series(f"s{number}") for number in range(MAX_SERIES))))
    assert len(found.series) == MAX_SERIES


def test_a_window_covers_its_series_from_its_start_to_its_end() -> None:
    window = {"series": ["noop-ncsa"], "starts_at": NOON.isoformat(), "ends_at": None, "reason": "new switch"}
    until = {**window, "ends_at": (NOON + timedelta(hours=1)).isoformat()}
    endless, bounded = parsed(assignment(windows=[window, until])).windows
    times = [NOON + timedelta(minutes=minutes) for minutes in (-1, 0, 59, 60)]
    assert [bounded.covers("noop-ncsa", time) for time in times] == [False, True, True, False]
    assert [endless.covers("noop-ncsa", time) for time in times] == [False, True, True, True]
    assert not endless.covers("another", NOON)


def test_forecasts_and_windows_change_nothing_of_what_runs() -> None:
    window: dict[str, Any] = {"series": [], "starts_at": NOON.isoformat(), "ends_at": None, "reason": ""}
    first = parsed(assignment())
    same = parsed(assignment(series(expected_seconds={"total.seconds": 1}), version=8, windows=[window]))
    assert first.what_runs() == same.what_runs()
    for change in ({"limit_seconds": 61}, {"parameters": {"a": 1}}, {"schedule": "1 * * * *"}):
        assert parsed(assignment(series(**change))).what_runs() != first.what_runs()


def test_a_series_without_a_schedule_or_with_a_leader_elsewhere_is_read() -> None:
    """Its runs are requested by users; the leader may run at another reporter."""
    found = parsed(assignment(series(schedule="", after="another"))).series["noop-ncsa"]
    assert (found.schedule, found.after) == ("", "another")
