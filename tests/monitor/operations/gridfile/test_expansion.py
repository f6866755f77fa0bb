"""Macros: one entry of a file expands to many series."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.operations.gridfile.expansion import InvalidMacro, count, expand
from monitor.operations.gridfile.format import SeriesEntry


def series(**more: Any) -> SeriesEntry:
    return SeriesEntry.model_validate(
        {"suite": "main", "probe": "nagios", "bindings": {"target": ["a"]}, **more}
    )


def expanded_names(name: str, **more: Any) -> list[str]:
    return [expanded.name for expanded in expand(name, series(**more))]


def test_a_list_gives_one_series_per_value() -> None:
    assert expanded_names("login-{site}", **{"for": {"site": ["sdsc", "ncsa"]}}) == [
        "login-sdsc",
        "login-ncsa",
    ]


def test_several_lists_give_one_series_per_combination() -> None:
    lists = {"site": ["sdsc", "ncsa"], "size": [1, 2]}
    assert expanded_names("{site}-{size}", **{"for": lists}) == ["sdsc-1", "sdsc-2", "ncsa-1", "ncsa-2"]


def test_a_mesh_gives_one_series_per_ordered_pair() -> None:
    pairs = ["a-b", "a-c", "b-a", "b-c", "c-a", "c-b"]
    assert expanded_names("{source}-{target}", mesh={"over": ["a", "b", "c"]}) == pairs


def test_an_unordered_mesh_gives_one_series_per_pair() -> None:
    pairs = ["a-b", "a-c", "b-c"]
    assert expanded_names("{source}-{target}", mesh={"over": ["a", "b", "c"], "unordered": True}) == pairs


def test_lists_and_a_mesh_can_be_combined() -> None:
    both = {"for": {"size": [1, 2]}, "mesh": {"over": ["a", "b"]}}
    assert expanded_names("{source}{target}{size}", **both) == ["ab1", "ba1", "ab2", "ba2"]


@pytest.mark.parametrize("unordered", [False, True])
@pytest.mark.parametrize("size", [2, 3, 7])
def test_count_equals_the_number_of_expanded_series(size: int, unordered: bool) -> None:
    entry = series(mesh={"over": list(range(size)), "unordered": unordered}, **{"for": {"x": [1, 2, 3]}})
    assert count(entry) == len(list(expand("{source}-{target}-{x}", entry)))


def test_placeholders_are_replaced_in_every_text() -> None:
    entry = series(
        bindings={"target": ["login-{site}"]},
        parameters={"command": "check_{site} -w 5"},
        timezone="{zone}",
        **{"for": {"site": ["sdsc"], "zone": ["America/Los_Angeles"]}},
    )
    (only,) = expand("{site}", entry)
    assert only.bindings == {"target": ("login-sdsc",)}
    assert only.parameters == {"command": "check_sdsc -w 5"}
    assert only.timezone == "America/Los_Angeles"


def test_a_parameter_that_is_only_a_placeholder_keeps_the_type_of_the_value() -> None:
    lists = {"size": [5], "ratio": [0.5], "native": [True], "word": ["5"]}
    parameters = {"a": "{size}", "b": "{ratio}", "c": "{native}", "d": "{word}", "e": "{size} MB"}
    (only,) = expand("x", series(parameters=parameters, **{"for": lists}))
    assert only.parameters == {"a": 5, "b": 0.5, "c": True, "d": "5", "e": "5 MB"}


def test_double_braces_are_a_literal_brace() -> None:
    (only,) = expand("x", series(parameters={"command": "awk '{{print {n}}}'"}, **{"for": {"n": [1]}}))
    assert only.parameters == {"command": "awk '{print 1}'"}


def test_without_a_macro_braces_are_literal() -> None:
    (only,) = expand("x", series(parameters={"command": "awk '{print {n}}' {{"}))
    assert only.parameters == {"command": "awk '{print {n}}' {{"}


def test_placeholders_in_values_are_not_replaced() -> None:
    assert expanded_names("x", parameters={"command": "{a}"}, **{"for": {"a": ["{b}"], "b": ["{a}"]}}) == [
        "x"
    ]


def test_an_unknown_placeholder_is_reported_with_the_nearest_one() -> None:
    with pytest.raises(InvalidMacro, match=r'there is no placeholder "\{sit\}"; did you mean "site"\?'):
        expanded_names("{sit}", **{"for": {"site": ["a"]}})
