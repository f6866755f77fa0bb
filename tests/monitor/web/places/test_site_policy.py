"""A site policy in words: what is forbidden first, and any JSON that a site may send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.web.places.site_policy import MOST_CHARACTERS, MOST_LINES, PolicyLine, policy_lines

FULL = {
    "disclosure": "full",
    "approval": "ask",
    "timezone": "Europe/Berlin",
    "rules": {
        "caps": {"concurrent_runs": 1, "bytes_per_day": 5_000_000_000, "cpu_hours_per_day": 12},
        "probes": {"allow": ["disk", "login"], "forbid": ["madbench"]},
        "hours": {"forbid": ["mon-fri 08:00-18:00"]},
    },
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_a_policy_in_words() -> None:
    assert policy_lines(FULL) == [
        PolicyLine("This site forbids probes", "madbench", is_refusal=True),
        PolicyLine("This site forbids hours", "mon-fri 08:00-18:00", is_refusal=True),
        PolicyLine("Concurrent runs", "at most 1"),
        PolicyLine("Copied per day", "at most 5 GB"),
        PolicyLine("CPU time per day", "at most 12 h"),
        PolicyLine("This site allows only probes", "disk, login"),
        PolicyLine("Disclosure", "reports in full"),
        PolicyLine("Approval", "changes wait for approval at the site"),
        PolicyLine("Timezone", "Europe/Berlin"),
    ]


def test_counts_of_a_minimal_policy_are_no_limits() -> None:
    rules = {"caps": {"concurrent_runs": 1}, "probes": {"forbid": 3}}
    lines = {line.label: line.text for line in policy_lines({"disclosure": "minimal", "rules": rules})}
    assert lines["Concurrent runs"] == "limited (not disclosed)"
    assert lines["This site forbids probes"] == "3 (not disclosed)"


@pytest.mark.parametrize("summary", [None, 7, "text", [], {}])
def test_no_policy_has_no_lines(summary: Any) -> None:
    assert policy_lines(summary) == []


@given(st.dictionaries(st.sampled_from(["rules", "disclosure", "x"]), json_values))
def test_any_summary_gives_lines_of_bounded_length(summary: dict[str, Any]) -> None:
    for line in policy_lines(json.loads(json.dumps(summary))):
        assert len(line.label) <= MOST_CHARACTERS + 40
        assert len(line.text) <= MOST_CHARACTERS + 40


def test_the_number_of_lines_is_bounded() -> None:
    rules = {f"rule{i}": {"forbid": ["x" * 10_000]} for i in range(1000)}
    assert len(policy_lines({"rules": rules})) == MOST_LINES
