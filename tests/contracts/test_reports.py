"""The contract of the wire format: a written report is parsed unchanged."""

from __future__ import annotations

import json
import string
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

import probes
from probes import CATEGORIES
from reporters.report import (
    LEVELS,
    MAX_BYTES,
    OUTCOMES,
    Clock,
    Environment,
    Failure,
    LogLine,
    MetricValue,
    ProbeIdentity,
    Report,
    StageTiming,
    from_json,
    run_id,
    to_json,
    totals,
)
from reporters.run import identity
from reporters.usage import ResourceUsage

names = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=30)
texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60)
seconds = st.floats(0, 1e9)
sizes = st.integers(0, 2**62)
used = st.builds(ResourceUsage, sizes, sizes, seconds)
times = st.datetimes(timezones=st.just(UTC))
stages = st.builds(StageTiming, names, st.sampled_from(CATEGORIES), seconds, seconds)
metrics = st.builds(MetricValue, names, st.floats(allow_nan=False, allow_infinity=False), names)
failures = st.builds(
    Failure, names, st.none() | texts, texts, st.none() | st.integers(-(2**31), 2**31), texts
)
values = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.booleans()
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    series, slot = draw(names), draw(times)
    return Report(
        run=run_id(series, slot),
        series=series,
        slot=slot,
        reporter=draw(names),
        probe=ProbeIdentity(draw(names), draw(texts), "0" * 64),
        parameters=draw(st.dictionaries(names, values, max_size=4)),
        started_at=draw(times),
        seconds=draw(seconds),
        outcome=draw(st.sampled_from(OUTCOMES)),
        reason=draw(texts),
        stages=tuple(draw(st.lists(stages, max_size=5, unique_by=lambda stage: stage.name))),
        metrics=tuple(draw(st.lists(metrics, max_size=5, unique_by=lambda metric: metric.name))),
        failure=draw(st.none() | failures),
        log=tuple(draw(st.lists(st.builds(LogLine, st.sampled_from(LEVELS), seconds, texts), max_size=4))),
        environment=Environment(draw(texts), draw(texts), draw(texts), draw(st.dictionaries(names, texts))),
        clock=Clock(draw(times), draw(st.booleans())),
        bindings=draw(st.dictionaries(names, st.lists(names, max_size=3).map(tuple), max_size=3)),
        usage=draw(st.dictionaries(names, used, max_size=3)),
        extra=draw(st.dictionaries(names.map(lambda name: f"new-{name}"), values, max_size=3)),
    )


@given(reports())
def test_a_written_report_is_parsed_unchanged(report: Report) -> None:
    assert from_json(to_json(report)) == report


@given(reports())
def test_a_parsed_report_is_written_unchanged(report: Report) -> None:
    data = to_json(report)
    assert to_json(from_json(data)) == data
    assert len(data) <= MAX_BYTES
    assert json.loads(data)["version"] == 1


@given(reports())
def test_each_total_is_at_most_the_one_before(report: Report) -> None:
    total = totals(report.stages)
    assert total["total.seconds"] >= total["total_essential.seconds"] >= total["total_core.seconds"] >= 0


@pytest.mark.parametrize("name", probes.names())
def test_every_probe_is_identified_by_its_source(name: str) -> None:
    probe = identity(name, probes.load(name))
    assert (probe.name, len(probe.sha256)) == (name, 64)
