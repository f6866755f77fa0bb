"""Drawings that the server makes."""

from __future__ import annotations

import re

from monitor.models.run import State
from monitor.pages import drawings
from monitor.services.blame import Fault


def heights(drawn: str) -> dict[str, float]:
    """The length of the first stroke of every class."""
    return {
        kind: float(length)
        for kind, length in re.findall(r'class="t-(\w+)" d="M[\d.]+ [\d.]+v([\d.]+)', drawn)
    }


def test_what_failed_here_stands_out_by_its_height_and_not_by_colour_alone() -> None:
    drawn = drawings.trend(
        ((State.PASSED, Fault.NOBODY), (State.FAILED, Fault.HERE), (State.FAILED, Fault.ELSEWHERE))
    )
    found = heights(drawn)
    assert found["here"] == max(found.values())
    assert len(set(found.values())) > 1
    assert set(found) == {"passed", "here", "elsewhere"}


def test_every_run_has_its_stroke() -> None:
    drawn = drawings.trend(((State.PASSED, Fault.NOBODY),) * 20)
    assert drawn.count("M") == 20


def test_a_sparkline_needs_two_values() -> None:
    assert drawings.sparkline([1.0]) == ""
    assert "<polyline" in drawings.sparkline([1.0, 2.0])


def test_equal_values_make_a_level_line() -> None:
    points = re.search(r'points="([^"]+)"', drawings.sparkline([3.0, 3.0, 3.0]))
    assert points is not None
    assert len({pair.split(",")[1] for pair in points[1].split()}) == 1
