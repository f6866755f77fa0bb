"""Names and numbers of metrics that come from external programs."""

from __future__ import annotations

import pytest

from probes.common.external_metrics import MeasurementCollector, safe_name
from tests.probes.common.log_only_grid import LogOnlyGrid


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("load1", "load1"),
        ("/", "_"),
        ("/var/log", "var_log"),
        ("C:\\ used %", "C_used"),
        ("é", "_"),
        ("", "_"),
    ],
)
def test_a_label_becomes_a_safe_name(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_dropped_measurements_are_counted() -> None:
    collector, grid = MeasurementCollector(), LogOnlyGrid()
    collector.add("x", float("inf"), "count")
    collector.add("n" * 500, 1.0, "count")
    assert [len(metric.name) for metric in collector.collected(grid)] == [190]  # type: ignore[arg-type]
    assert grid.lines == ["1 values dropped: not finite, or more than 200 metrics"]
