"""Every condition of alert rules about reporters: bounds, purity, a name of its own, and a default rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.alerts import conditions, reporter_conditions
from monitor.analysis.alerts.conditions.base import InvalidThreshold
from monitor.analysis.alerts.reporter_conditions.base import Drop, ReporterInput
from monitor.operations.gridfile.alert_entries import AlertRuleEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
every_condition = pytest.mark.parametrize("kind", reporter_conditions.names())

past = st.integers(0, 400_000).map(lambda seconds: NOON - timedelta(seconds=seconds))
numbers = st.none() | st.floats(-1e12, 1e12)
inputs = st.builds(
    ReporterInput,
    enrolled_at=past,
    seen_at=st.none() | past,
    oldest_at=st.none() | past | st.just(NOON + timedelta(days=400)),
    clock_offset_seconds=numbers,
    clock_bound_seconds=numbers.map(lambda value: value and abs(value)),
    drops=st.lists(st.builds(Drop, past, st.integers(1, 10**12)), max_size=3).map(
        lambda drops: sorted(drops, key=lambda drop: drop.received_at)
    ),
)


@every_condition
def test_a_threshold_out_of_bounds_is_refused_with_the_bounds(kind: str) -> None:
    plug_in = reporter_conditions.load(kind)
    for threshold in (plug_in.least - 1, plug_in.most + 1):
        with pytest.raises(InvalidThreshold, match=f"{kind}: expected {plug_in.unit} from"):
            reporter_conditions.condition(kind, threshold)


@every_condition
def test_the_default_rule_has_a_usable_threshold_and_a_title(kind: str) -> None:
    plug_in = reporter_conditions.load(kind)
    reporter_conditions.condition(kind, plug_in.default)
    assert plug_in.title


@every_condition
def test_no_condition_of_series_has_the_name(kind: str) -> None:
    assert kind not in conditions.names()


@every_condition
def test_a_grid_file_has_a_key_for_the_condition(kind: str) -> None:
    plug_in = reporter_conditions.load(kind)
    rule = AlertRuleEntry.model_validate({"watches": {"everything": True}, kind: plug_in.least})
    assert rule.conditions == {kind: plug_in.least}
    assert AlertRuleEntry.model_fields[kind].description == plug_in.description


@every_condition
def test_a_reporter_that_has_just_enrolled_opens_no_alert(kind: str) -> None:
    condition = reporter_conditions.condition(kind, reporter_conditions.load(kind).least)
    assert not condition.judge(ReporterInput(NOON), NOON).is_open


@every_condition
@given(data=st.data())
def test_a_verdict_depends_on_its_arguments_alone_and_says_since_when(kind: str, data: st.DataObject) -> None:
    plug_in = reporter_conditions.load(kind)
    condition = reporter_conditions.condition(kind, data.draw(st.integers(plug_in.least, plug_in.least + 5)))
    reporter = data.draw(inputs)
    verdict = condition.judge(reporter, NOON)
    assert condition.judge(reporter, NOON) == verdict
    assert verdict.text
    if verdict.is_open:
        assert verdict.since is not None
        assert verdict.since <= NOON
