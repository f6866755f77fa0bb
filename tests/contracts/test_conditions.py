"""Every condition of alert rules: bounds, purity, and what a verdict says."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.alerts import conditions
from monitor.analysis.alerts.conditions.base import (
    COUNTED,
    UNREPORTED,
    ConditionInput,
    InvalidThreshold,
    RunOutcome,
)
from monitor.operations.gridfile.alert_entries import AlertRuleEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
every_condition = pytest.mark.parametrize("kind", conditions.names())


def runs(states: st.SearchStrategy[str]) -> st.SearchStrategy[list[RunOutcome]]:
    listed = st.lists(states, max_size=8)
    return listed.map(
        lambda many: [RunOutcome(uuid.uuid4(), NOON - i * HOUR, state) for i, state in enumerate(many)]
    )


@st.composite
def recent(draw: st.DrawFn) -> ConditionInput:
    newest = draw(runs(st.sampled_from(COUNTED)))
    unreported = draw(st.none() | st.sampled_from(UNREPORTED))
    if unreported is None:
        return ConditionInput(newest)
    slot = NOON + draw(st.integers(-50, 5)) * HOUR
    return ConditionInput(newest, RunOutcome(uuid.uuid4(), slot, unreported), slot)


@every_condition
def test_a_threshold_out_of_bounds_is_refused_with_the_bounds(kind: str) -> None:
    plug_in = conditions.load(kind)
    for threshold in (plug_in.least - 1, plug_in.most + 1):
        with pytest.raises(InvalidThreshold, match=f"{kind}: expected {plug_in.unit} from"):
            conditions.condition(kind, threshold)


@every_condition
def test_a_grid_file_has_a_key_for_the_condition(kind: str) -> None:
    plug_in = conditions.load(kind)
    rule = AlertRuleEntry.model_validate({"watches": {"everything": True}, kind: plug_in.least})
    assert rule.conditions == {kind: plug_in.least}
    assert AlertRuleEntry.model_fields[kind].description == plug_in.description


@every_condition
def test_a_series_without_runs_opens_no_alert(kind: str) -> None:
    condition = conditions.condition(kind, conditions.load(kind).least)
    assert not condition.judge(ConditionInput(), NOON).is_open


@every_condition
@given(data=st.data())
def test_a_verdict_depends_on_its_arguments_alone_and_names_a_run_when_it_opens(
    kind: str, data: st.DataObject
) -> None:
    plug_in = conditions.load(kind)
    condition = conditions.condition(kind, data.draw(st.integers(plug_in.least, plug_in.least + 5)))
    runs = data.draw(recent())
    verdict = condition.judge(runs, NOON)
    assert condition.judge(runs, NOON) == verdict
    assert verdict.text
    if verdict.is_open:
        assert verdict.run is not None
        assert verdict.since is not None
        assert verdict.since <= NOON
    assert verdict.recheck_at is None or verdict.recheck_at > NOON


@every_condition
@given(runs=recent())
def test_no_more_runs_are_needed_than_the_condition_says(kind: str, runs: ConditionInput) -> None:
    condition = conditions.condition(kind, conditions.load(kind).least)
    fewer = ConditionInput(runs.newest[: condition.runs_needed], runs.unreported, runs.unreported_due_at)
    assert condition.judge(fewer, NOON).is_open == condition.judge(runs, NOON).is_open
