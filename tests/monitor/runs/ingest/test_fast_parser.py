"""The fast parser accepts nothing that the strict parser refuses, and parses nothing differently."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs.ingest import fast_parser
from monitor.runs.ingest.fast_parser import NeedsStrictParser, ParsedReport, parse, parse_fast, parse_strictly
from probes import CATEGORIES
from reporters import report as wire
from tests.conftest import NOON
from tests.monitor.builders import circle_report, failed_circle_report, gather_report

REPORTS = [
    gather_report(NOON, series="gather", numbers=random.Random(1)),
    circle_report(NOON),
    failed_circle_report(NOON, message='no "quota" on /scratch: \\\\fs: ä'),
    replace(circle_report(NOON), clock=wire.Clock(NOON, synchronised=False, correction_seconds=-3600.5)),
]
BODIES = [wire.to_json(report) for report in REPORTS]
PIECES = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\t", b"\x00", b"\xff", b"\xc3"),
    *(b"null", b"true", b"0", b"-0", b"01", b"1.", b"1e400", b"-1e-400", b"NaN", b"9223372036854775808"),
    *(b"1e30", b"123456789012345678901", b'"a":1', b'"version":1', b'"run" :1', b"\\u0000", b"\\ud800"),
    *(b'"seconds":2.0', b'"name":"init"', b'"file_bytes":1', b"2026-02-30T00:00:00.000000Z", b"+01:00"),
)


def fields_of(report: ParsedReport) -> dict[str, Any]:
    """Return all fields as plain values."""
    plain = {name: getattr(report, name) for name in ParsedReport.__struct_fields__}
    for name in ("stages", "metrics"):
        plain[name] = [values(item) for item in plain[name]]
    plain["failure"] = None if report.failure is None else values(report.failure)
    plain["usage"] = {name: values(usage) for name, usage in report.usage.items()}
    measured = report.measured
    bound = {role: list(names) for role, names in measured.bindings.items()}
    plain["measured"] = (measured.probe, measured.probe_version, dict(measured.parameters), bound)
    return plain


def values(item: object) -> dict[str, Any]:
    names = getattr(item, "__struct_fields__", None) or vars(item)
    return {name: getattr(item, name) for name in names}


def check_same_result(body: bytes) -> None:
    """Check that both parsers return the same report if the fast one accepts *body*."""
    try:
        report = parse_fast(body)
    except NeedsStrictParser:
        return
    strict = parse_strictly(body)
    assert fields_of(report) == fields_of(strict)
    assert report.measured.fingerprint == strict.measured.fingerprint


@pytest.mark.parametrize("body", BODIES)
def test_reports_of_our_reporters_are_parsed_fast(body: bytes) -> None:
    assert fields_of(parse_fast(body)) == fields_of(parse_strictly(body))


@given(st.sampled_from(BODIES), st.data())
def test_changed_bytes_are_parsed_as_by_the_strict_parser(body: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(body)))
        end = start + data.draw(st.sampled_from((0, 0, 1, 2, 8)))
        body = body[:start] + data.draw(st.sampled_from((b"", *PIECES))) + body[end:]
    check_same_result(body)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["", "x" * 201, "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.1234567Z", "passed"]),
    st.sampled_from([-1, 2**63, 2**63 - 1, -(2**63), 1e15, 1.1e15, 0, -0.0, 10**400]),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=2),
)


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the path of every value of a document."""
    items: list[tuple[object, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    if isinstance(value, list):
        items = list(enumerate(value))
    return [path, *(place for name, inner in items for place in places(inner, (*path, name)))]


@given(st.sampled_from(BODIES), VALUES, st.booleans(), st.data())
def test_changed_values_are_parsed_as_by_the_strict_parser(
    body: bytes, value: Any, is_put_beside: bool, data: st.DataObject
) -> None:
    document: Any = json.loads(body)
    *path, last = data.draw(st.sampled_from(places(document)[1:]))
    inner = document
    for name in path:
        inner = inner[name]
    if is_put_beside and isinstance(inner, dict):
        inner[data.draw(st.text(max_size=3))] = value
    else:
        inner[last] = value
    compact = data.draw(st.booleans())
    text = json.dumps(
        document, ensure_ascii=data.draw(st.booleans()), separators=(",", ":") if compact else None
    )
    check_same_result(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("original", "instead"),
    [
        (b'"reason":""', b'"reason":"","reason":"2"'),
        (b'"reason":""', b'"reason" :"","reason":"2"'),
        (b'"reason":""', b'"reason"\n:"","reason":"2"'),
        (b'"reason":""', b'"reason":"\\": ","reason" :"2"'),
        (b'"file_bytes":1000', b'"file_bytes":1000,"file_bytes":1000'),
        (b'"reason":""', b'"reason":"\\u0000"'),
        (b'"reason":""', b'"reason":"\\ud83d"'),
        (b'"reason":""', b'"reason":"\xff"'),
        (b'"version":1', b'"version":2'),
        (b'"version":1', b'"version":true'),
        (b'"seconds":7.0', b'"seconds":9223372036854775808'),
        (b'"seconds":7.0', b'"seconds":-0.5'),
        (b'"parameters":{', b'"parameters":{"deep":' + b"[" * 40 + b"]" * 40 + b","),
        (b'"parameters":{', b'"parameters":{"deep":' + b"[" * 100_000 + b"]" * 100_000 + b","),
        (b'"parameters":{', b'"parameters":{"large":99999999999999999999,'),
        (b'"category":"cleanup"', b'"category":"tidying"'),
        (b'"name":"cleanup"', b'"name":"init"'),
        (b'"slot":"2026-03-01T12:00:00', b'"slot":"2026-02-30T12:00:00'),
        (b'"slot":"2026-03-01T12:00:00', b'"slot":"2026-03-01T12:00:01'),
        (b'"slot":"2026-03-01T12:00:00', b'"slot":"2026-03-01T24:00:00'),
        (b'"sent_at":"2026-03-01T', b'"sent_at":"2026-13-01T'),
    ],
)
def test_a_malformed_report_is_refused_with_the_message_of_the_strict_parser(
    original: bytes, instead: bytes
) -> None:
    body = wire.to_json(circle_report(NOON)).replace(original, instead)
    with pytest.raises(wire.ReportError) as strict:
        wire.from_json(body)
    with pytest.raises(wire.ReportError) as refused:
        parse(body)
    assert str(refused.value) == str(strict.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document | {"weather": "sunny"},
        lambda document: document | {"started_at": "2026-03-01T13:00:00.1234567+01:00"},
        lambda document: document | {"seconds": 1e30},
    ],
)
def test_an_unusual_report_is_parsed_by_the_strict_parser(
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    body = json.dumps(change(json.loads(BODIES[1]))).encode()
    with pytest.raises(NeedsStrictParser):
        parse_fast(body)
    assert parse(body).series == "circle"


def test_parameters_of_any_length_are_parsed_and_only_short_ones_cached(noon: datetime) -> None:
    cached = fast_parser._identity.cache_info().currsize
    long = replace(circle_report(noon), parameters={"text": "x" * 5000})
    assert parse_fast(wire.to_json(long)).measured.parameters == long.parameters
    assert fast_parser._identity.cache_info().currsize == cached


def test_both_parsers_accept_the_same_words() -> None:
    def words(kind: type, field: str) -> tuple[str, ...]:
        return get_args(get_type_hints(kind)[field])

    assert words(fast_parser._Report, "outcome") == wire.OUTCOMES
    assert words(fast_parser._LogLine, "level") == wire.LEVELS
    assert words(fast_parser._Stage, "category") == CATEGORIES
