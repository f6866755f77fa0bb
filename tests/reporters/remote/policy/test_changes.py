from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporters.remote.policy.changes import changes


def document(**changed: Any) -> dict[str, Any]:
    """Return an assignment as in the protocol."""
    return {
        "format": 1,
        "reporter": "ncsa",
        "version": 7,
        "issued_at": "2026-11-23T06:00:00.000000Z",
        "series": [
            {
                "name": "disk-ncsa",
                "probe": "disk",
                "parameters": {"file_bytes": 100},
                "bindings": {"target": ["login"]},
                "schedule": "H * * * *",
                "expected_seconds": {"total.seconds": 4.0},
            }
        ],
        "resources": {"login": {"site": "ncsa", "scratch": "/scratch", "shell": {"kind": "local"}}},
        "windows": [],
        "capacity": 4,
        **changed,
    }


def series(**changed: Any) -> dict[str, Any]:
    return {**document()["series"][0], **changed}


def test_changed_values_are_shown_with_old_and_new() -> None:
    new = document(
        version=8,
        series=[series(schedule="* * * * *", parameters={"file_bytes": 200, "tool": "fio"})],
        capacity=8,
    )
    assert changes(document(), new) == (
        "~ reporter\n"
        "    capacity: 4 -> 8\n"
        "~ series disk-ncsa\n"
        "    parameters.file_bytes: 100 -> 200\n"
        '    parameters.tool: not set -> "fio"\n'
        '    schedule: "H * * * *" -> "* * * * *"'
    )


def test_added_and_removed_series_and_resources_are_shown() -> None:
    new = document(
        series=[{"name": "login-ncsa", "probe": "login"}],
        resources={"evil": {"shell": {"kind": "ssh", "host": "evil.net"}}},
    )
    assert changes(document(), new) == (
        "+ resource evil\n"
        '    shell.host: "evil.net"\n'
        '    shell.kind: "ssh"\n'
        "- resource login\n"
        "- series disk-ncsa\n"
        "+ series login-ncsa\n"
        '    probe: "login"'
    )


def test_the_first_assignment_is_all_new() -> None:
    shown = changes(None, document())
    assert "+ series disk-ncsa" in shown
    assert "+ resource login" in shown
    assert "    capacity: 4" in shown


def test_windows_and_forecasts_need_no_approval() -> None:
    new = document(
        version=9,
        issued_at="2026-11-24T06:00:00.000000Z",
        windows=[{"series": ["disk-ncsa"], "reason": "switch"}],
        series=[series(expected_seconds={"total.seconds": 9.0})],
    )
    assert changes(document(), new) == ""


def test_an_unknown_field_needs_approval() -> None:
    assert changes(document(), document(hooks=["rm"])) == '~ reporter\n    hooks: not set -> ["rm"]'


@pytest.mark.parametrize("text", ["\x1b[2J\x1b[H", "a\nb", "\u202eevil", "a.b", 'x": "y', "\x9b2J"])
def test_texts_of_the_server_cannot_write_to_the_terminal(text: str) -> None:
    new = document(
        series=[series(name=text, probe=text, parameters={text: text})], resources={text: {text: text}}
    )
    shown = changes(document(), {**new, text: text})
    assert shown.isascii()
    assert all(line.isprintable() for line in shown.split("\n"))
    assert f"{text}:" not in shown


def test_a_series_cannot_hide_behind_another_of_its_name() -> None:
    shown = changes(document(), document(series=[series(), series(probe="nagios")]))
    assert "+ series disk-ncsa (2)" in shown
    assert '"nagios"' in shown


def test_a_path_cannot_be_imitated_by_a_name() -> None:
    nested = document(resources={"login": {"shell": {"host": "a"}}})
    flat = document(resources={"login": {"shell.host": "a"}})
    assert changes(nested, flat) != ""


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
# Few values, so that two documents are often alike.
few = st.recursive(
    st.sampled_from([None, 0, "", "a"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["", "name", "value"]), inner, max_size=2)
    ),
    max_leaves=4,
)
documents = st.fixed_dictionaries(
    {"series": anything, "resources": anything, "capacity": anything}
) | st.fixed_dictionaries({"series": few, "resources": few, "capacity": st.none()})


@given(documents, documents)
def test_assignments_without_changes_are_equal(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Whatever a server sends: a difference is shown, except of what needs no approval, and of the order."""

    def significant(value: Any) -> Any:
        found = copy.deepcopy(value)
        for item in found["series"] if isinstance(found["series"], list) else [found["series"]]:
            if isinstance(item, dict):
                item.pop("expected_seconds", None)
        if isinstance(found["series"], list):
            found["series"].sort(key=partial(json.dumps, sort_keys=True))
        return found

    assert changes(old, copy.deepcopy(old)) == ""
    if not changes(old, new):
        assert json.dumps(significant(old), sort_keys=True) == json.dumps(significant(new), sort_keys=True)
