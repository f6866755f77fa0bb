"""The wire format: written and read again, strictly, whatever the bytes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporters.report import (
    MAX_BYTES,
    Clock,
    Environment,
    Failure,
    LogLine,
    MalformedReport,
    MetricValue,
    ProbeIdentity,
    Report,
    ReportError,
    StageTiming,
    UnsupportedVersion,
    from_json,
    parse_rfc3339,
    rfc3339,
    run_id,
    to_json,
    totals,
)
from reporters.usage import ResourceUsage

SLOT = datetime(2026, 3, 1, 12, 7, tzinfo=UTC)


def report(**changes: Any) -> Report:
    full = Report(
        run=run_id("gather-main", SLOT),
        series="gather-main",
        slot=SLOT,
        reporter="home",
        probe=ProbeIdentity("gather", "1", "a" * 64),
        parameters={"file_bytes": 100_000_000, "label": "täst"},
        started_at=SLOT + timedelta(seconds=0.25),
        seconds=12.5,
        outcome="failed",
        reason="compute at ncsa failed: cc: internal error",
        stages=(StageTiming("init", "setup", 1.5, 0.0), StageTiming("compute", "compute", 11.0, 1.5)),
        metrics=(MetricValue("transfer.bytes_per_second", 1e8, "bytes_per_second"),),
        failure=Failure("compute", "ncsa", "cc: internal error", 4, "line 1\nline 2"),
        log=(LogLine("info", 0.0, "begin"), LogLine("error", 12.4, "end")),
        environment=Environment("host1", "6.1.0", "3.11.7", {"ssh": "OpenSSH_9.2p1"}),
        clock=Clock(SLOT + timedelta(seconds=13), synchronised=True),
        bindings={"sources": ("anl", "iu"), "compute": ("ncsa",), "destination": ("sdsc",)},
        usage={"ncsa": ResourceUsage(10, 20, 1.5)},
    )
    return replace(full, **changes)


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(to_json(report())), **changes}


def reading(document: object) -> Report:
    return from_json(json.dumps(document))


def test_a_report_survives_the_wire() -> None:
    assert from_json(to_json(report())) == report()


def test_the_identity_of_a_run_never_changes() -> None:
    assert str(run_id("gather-main", SLOT)) == "dda46852-b190-553a-9cc0-1245ee755e29"


def test_the_same_moment_in_another_zone_is_the_same_run() -> None:
    elsewhere = SLOT.astimezone(timezone(timedelta(hours=-5)))
    assert run_id("s", elsewhere) == run_id("s", SLOT)


def test_bytes_are_compact_and_sorted() -> None:
    data = to_json(report())
    assert (
        data
        == json.dumps(json.loads(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    )


def test_unknown_fields_are_kept_and_written_again_at_every_depth() -> None:
    sent = document(colour="red")
    sent["probe"]["licence"] = "MIT"
    sent["stages"][1]["cpu_seconds"] = 4
    sent["failure"]["signature"] = {"id": 7}
    read = reading(sent)
    assert read.extra["colour"] == "red"
    assert read.extra["stages"] == {"1": {"cpu_seconds": 4}}
    assert json.loads(to_json(read)) == sent


def test_a_newer_version_is_refused_with_the_supported_version() -> None:
    with pytest.raises(UnsupportedVersion, match="version 2 is not supported; the supported version is 1"):
        from_json(b'{"version": 2}')


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("stages", 1, "seconds"), "x", "stages[1].seconds: expected a finite number >= 0, got 'x'"),
        (("stages", 0, "seconds"), -1, "stages[0].seconds: expected a finite number >= 0, got -1"),
        (("stages", 0, "seconds"), True, "stages[0].seconds: expected a finite number >= 0, got True"),
        (("stages", 0, "category"), "lunch", "stages[0].category: expected one of setup, transfer"),
        (("stages", 1, "name"), "init", "stages[1].name: expected a unique name, got 'init'"),
        (("stages",), {}, "stages: expected a list, got {}"),
        (("stages", 0), 5, "stages[0]: expected an object, got 5"),
        (("metrics", 0, "value"), None, "metrics[0].value: expected a finite number, got None"),
        (("outcome",), "fine", "outcome: expected one of passed, failed"),
        (("outcome",), ["passed"], "outcome: expected one of passed, failed"),
        (("run",), str(run_id("s", SLOT)), "run: expected dda46852-b190-553a-9cc0-1245ee755e29"),
        (("series",), "", "series: expected text that is not empty, got ''"),
        (("series",), "s" * 201, "series: expected at most 200 characters"),
        (("slot",), "2026-03-01T12:07:00", "slot: expected a time as in RFC 3339 with a zone"),
        (("started_at",), "2026-02-30T12:07:00Z", "started_at: expected a time as in RFC 3339 with a zone"),
        (("started_at",), "0001-01-01T00:00:00+14:00", "started_at: expected a time"),
        (("seconds",), 10**400, "seconds: expected an integer of 64 bits"),
        (("version",), "1", "version: expected an integer, got '1'"),
        (("failure", "exit_status"), 1.5, "failure.exit_status: expected an integer, got 1.5"),
        (("failure", "resource"), 5, "failure.resource: expected text, got 5"),
        (("failure",), [], "failure: expected an object, got []"),
        (("probe", "sha256"), "A" * 64, "probe.sha256: expected text like"),
        (("parameters",), [], "parameters: expected an object, got []"),
        (("parameters",), {"a": {"b": "x\0"}}, "parameters.a.b: expected text without NUL"),
        (("parameters",), {"a": ["\ud800"]}, "parameters.a[0]: expected text without NUL and lone"),
        (("environment", "tools", "ssh"), 9, "environment.tools.ssh: expected text, got 9"),
        (("clock", "synchronised"), 1, "clock.synchronised: expected true or false, got 1"),
        (("bindings",), {"ring": "iu"}, "bindings.ring: expected a list of texts, got 'iu'"),
        (("bindings",), {"ring": ["iu", 5]}, "bindings.ring: expected a list of texts, got ['iu', 5]"),
        (("usage",), {"iu": 5}, "usage.iu: expected an object, got 5"),
        (("usage",), {"iu": {}}, "usage.iu.bytes_sent: expected an integer >= 0, but it is missing"),
        (("usage",), {"iu": {"bytes_sent": -1}}, "usage.iu.bytes_sent: expected an integer >= 0, got -1"),
        (
            ("usage",),
            {"iu": {"bytes_sent": 0, "bytes_received": 0, "cpu_seconds": 1e16}},
            "usage.iu.cpu_seconds: expected at most 1e+15, got 1e+16",
        ),
        (("log", 0, "level"), "loud", "log[0].level: expected one of debug, info, warning, error"),
    ],
)  # fmt: skip
def test_a_malformed_field_is_named(path: tuple[Any, ...], value: object, message: str) -> None:
    broken = document()
    inner = broken
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(MalformedReport) as raised:
        reading(broken)
    assert message in str(raised.value)


def test_bindings_keep_their_order() -> None:
    bound = report(bindings={"ring": ("iu", "anl"), "zero": ()})
    assert from_json(to_json(bound)) == bound


def test_usage_may_be_empty() -> None:
    assert from_json(to_json(report(usage={}))).usage == {}


def test_the_id_of_the_run_may_be_missing() -> None:
    without = document()
    del without["run"]
    assert reading(without).run == report().run


@pytest.mark.parametrize("name", sorted(json.loads(to_json(report())).keys() - {"run"}))
def test_every_other_field_is_required(name: str) -> None:
    broken = document()
    del broken[name]
    with pytest.raises(MalformedReport, match=f"{name}: expected .* missing"):
        reading(broken)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"[]", "expected a JSON object, got []"),
        (b"\xff\xfe", "not UTF-8"),
        ("\ud800", "not UTF-8"),
        (b'{"version": NaN}', "NaN is not a finite number"),
        (b'{"version": 1, "seconds": 1e999}', "seconds: expected a finite number, got inf"),
        (b'{"version": 1, "version": 1}', "the name 'version' occurs twice"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "nested too deep"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"version": ' + b"9" * 5000 + b"}", ""),
        (b" " * MAX_BYTES + b"{}", f"too large: expected at most {MAX_BYTES} bytes, got {MAX_BYTES + 2}"),
    ],
)
def test_bytes_that_are_no_report_are_refused_with_the_reason(data: bytes | str, message: str) -> None:
    with pytest.raises(MalformedReport) as raised:
        from_json(data)
    assert message in str(raised.value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_bytes_raise_anything_but_a_report_error(data: bytes | str) -> None:
    with pytest.raises(ReportError):
        from_json(data)


@given(st.data())
def test_no_replaced_value_raises_anything_but_a_report_error(data: st.DataObject) -> None:
    changed: Any = document()
    inner = changed
    while True:
        steps = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        step = data.draw(st.sampled_from(steps))
        if not isinstance(inner[step], (dict, list)) or not inner[step] or data.draw(st.booleans()):
            break
        inner = inner[step]
    inner[step] = data.draw(JSON_VALUES)
    try:
        read = reading(changed)
    except ReportError:
        return
    assert from_json(to_json(read)) == read


@given(cut_at=st.integers(0, 900), flipped=st.integers(0, 255))
def test_no_damaged_byte_raises_anything_but_a_report_error(cut_at: int, flipped: int) -> None:
    data = to_json(report())
    for damaged in (data[:cut_at], data[:cut_at] + bytes([flipped]) + data[cut_at + 1 :]):
        try:
            from_json(damaged)
        except ReportError:
            continue


def test_a_long_log_is_cut_in_its_middle_with_a_note() -> None:
    lines = [LogLine("info", float(i), f"line {i} " + "x" * 90) for i in range(20_000)]
    data = to_json(report(log=lines))
    read = from_json(data)
    assert MAX_BYTES * 0.95 < len(data) <= MAX_BYTES
    assert read.log[0].text.startswith("line 0 ")
    assert read.log[-1].text.startswith("line 19999 ")
    (notice,) = [line for line in read.log if "cut here" in line.text]
    assert notice.text == f"[{20_000 - len(read.log) + 1} lines cut here]"


@pytest.mark.parametrize("huge", ["message", "stderr_tail"])
def test_a_huge_failure_text_is_cut_and_the_log_keeps_its_place(huge: str) -> None:
    texts = {"message": "short", "stderr_tail": "short", huge: "€ü" * 400_000}
    failure = Failure("compute", "ncsa", texts["message"], stderr_tail=texts["stderr_tail"])
    data = to_json(report(failure=failure))
    read = from_json(data)
    assert len(data) <= MAX_BYTES
    assert read.failure is not None
    assert "characters cut" in getattr(read.failure, huge)
    assert [line.text for line in read.log] == ["begin", "end"]


def test_one_endless_log_line_is_cut_too() -> None:
    read = from_json(to_json(report(log=[LogLine("info", 0.0, "x" * 10**6)])))
    assert "characters cut" in read.log[0].text


@given(st.lists(st.text(max_size=400), max_size=40), st.text())
def test_any_log_text_can_be_sent(texts: list[str], stderr: str) -> None:
    shortened = report(log=[LogLine("info", 0.0, text) for text in texts], failure=Failure("s", "r", stderr))
    assert len(from_json(to_json(shortened)).log) == len(texts)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_never_written(value: float) -> None:
    with pytest.raises(MalformedReport):
        to_json(report(seconds=value))


def test_a_field_that_is_never_cut_is_named_if_too_large() -> None:
    with pytest.raises(MalformedReport, match="parameters: too large"):
        to_json(report(parameters={"p": "x" * MAX_BYTES}))


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_survive_the_wire(time: datetime) -> None:
    assert parse_rfc3339(rfc3339(time)) == time


@pytest.mark.parametrize(
    "text", ["2026-03-01T13:07:00+01:00", "2026-03-01T12:07:00.0Z", "2026-03-01t12:07:00z"]
)
def test_any_offset_is_read(text: str) -> None:
    assert parse_rfc3339(text) == SLOT


def test_a_time_without_a_zone_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="with a zone"):
        rfc3339(SLOT.replace(tzinfo=None))


def test_totals_leave_out_categories_step_by_step() -> None:
    stages = [
        StageTiming(name, category, seconds, 0.0)
        for name, category, seconds in [
            ("init", "setup", 1), ("in", "transfer", 2), ("queue_wait", "queue", 4),
            ("compute", "compute", 8), ("cleanup", "cleanup", 16),
        ]
    ]  # fmt: skip
    assert totals(stages) == {
        "total.seconds": 31.0, "total_essential.seconds": 14.0, "total_core.seconds": 10.0,
    }  # fmt: skip


def test_the_format_of_version_1_stays_readable() -> None:
    stored = (Path(__file__).parent / "data" / "report-v1.json").read_bytes()
    assert to_json(from_json(stored)) == stored.strip()
