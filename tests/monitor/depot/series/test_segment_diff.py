"""Differences between segments, as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.depot.series.segment_diff import changed_subjects, segment_changes
from monitor.models.segment import SegmentIdentity

BEFORE = SegmentIdentity(
    "gather",
    "1.0",
    {"file_bytes": 1_000_000, "parallel": 1, "wall_seconds": 90.0, "check": True},
    {"sources": ["anl", "iu"], "compute": ["ncsa"]},
)


@pytest.mark.parametrize(
    ("changed", "texts"),
    [
        ({}, []),
        ({"probe_version": "1.1"}, ["probe gather 1.0 -> 1.1"]),
        ({"probe_version": ""}, ["probe gather 1.0 -> unknown"]),
        ({"probe": "circle", "parameters": {}, "bindings": {}}, ["probe gather 1.0 -> circle 1.0"]),
        ({"file_bytes": 100_000_000}, ["file_bytes 1 MB -> 100 MB"]),
        ({"file_bytes": 1_000_001}, ["file_bytes 1000000 -> 1000001"]),
        ({"parallel": 4}, ["parallel 1 -> 4"]),
        ({"wall_seconds": 30.0}, ["wall_seconds 90.0 s -> 30.0 s"]),
        ({"check": False}, ["check yes -> no"]),
        ({"streams": 2}, ["streams none -> 2"]),
        ({"compute": ["sdsc"]}, ["compute ncsa -> sdsc"]),
        ({"sources": ["anl", "iu", "ornl"]}, ["sources anl, iu -> anl, iu, ornl"]),
        ({"sources": ["iu"]}, ["sources anl, iu -> iu"]),
        ({"sources": ["iu", "anl"]}, ["sources anl, iu -> iu, anl"]),
    ],
)
def test_a_change_is_described_with_units_and_names(changed: dict[str, Any], texts: list[str]) -> None:
    fields = {name: changed.pop(name) for name in list(changed) if name in vars(BEFORE)}
    bindings = {role: changed.pop(role) for role in list(changed) if role in BEFORE.bindings}
    after = replace(
        BEFORE,
        **{
            "parameters": {**BEFORE.parameters, **changed},
            "bindings": {**BEFORE.bindings, **bindings},
            **fields,
        },
    )
    assert [str(change) for change in segment_changes(BEFORE, after)] == texts


def test_the_changed_parts_are_summarised() -> None:
    after = SegmentIdentity("gather", "1.1", {"file_bytes": 1}, {"sources": ["iu"], "compute": ["ncsa"]})
    assert changed_subjects(segment_changes(BEFORE, after)) == "its probe, its parameters and its resources"
    assert changed_subjects(segment_changes(BEFORE, replace(BEFORE, probe_version="2"))) == "its probe"
