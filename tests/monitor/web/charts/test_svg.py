"""Small charts drawn by the server."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

from monitor.models.run import State
from monitor.runs.ledger.attribution import Fault
from monitor.web.charts import svg

SHEETS = Path(settings.BASE_DIR, "monitor/static/monitor")
STYLES = "".join((SHEETS / name).read_text(encoding="utf-8") for name in ("base.css", "overview.css"))
PASSED = (State.PASSED, Fault.NONE)


def extents(drawn: str) -> dict[str, tuple[float, float]]:
    """Return the vertical extent of the strokes of every class: (top, bottom) in pixels."""
    shown = {}
    for kind, middle in re.findall(r'class="t-(\w+)" d="M\d+ ([\d.]+)h', drawn):
        width = re.search(rf"\.t-{kind} {{ stroke-width: (\d+)px", STYLES)
        assert width is not None, f"the style sheet does not say how high t-{kind} is"
        shown[kind] = (float(middle) - int(width[1]) / 2, float(middle) + int(width[1]) / 2)
    return shown


def test_outcomes_differ_in_position_and_height_not_only_in_colour() -> None:
    kinds = (
        PASSED,
        (State.FAILED, Fault.HERE),
        (State.FAILED, Fault.ELSEWHERE),
        (State.MISSED, Fault.MONITOR),
    )
    shown = extents(svg.trend((*kinds, (State.SKIPPED, Fault.NONE))))
    assert len(set(shown.values())) == len(shown) == 5
    assert shown["here"] == (0.0, 14.0)
    assert all(0 <= top < bottom <= 14 for top, bottom in shown.values())


def test_equal_neighbours_form_one_path() -> None:
    drawn = svg.trend((PASSED,) * 3 + ((State.FAILED, Fault.HERE),) + (PASSED,) * 2)
    assert 'd="M0 11.5h11M16 11.5h7"' in drawn
    assert 'd="M12 7h3"' in drawn


def test_a_sparkline_needs_two_values() -> None:
    assert svg.sparkline([1.0]) == ""
    assert "<polyline" in svg.sparkline([1.0, 2.0])


def test_equal_values_give_a_horizontal_line() -> None:
    points = re.search(r'points="([^"]+)"', svg.sparkline([3.0, 3.0, 3.0]))
    assert points is not None
    assert len({pair.split(",")[1] for pair in points[1].split()}) == 1


def test_an_hourly_line_is_interrupted_at_missing_hours() -> None:
    gap = float("nan")
    drawn = svg.hourly([1.0, 2.0, gap, 2.0, gap, 1.0, 2.0])
    (lines,) = re.findall(r'<path d="([^"]+)"', drawn)
    assert lines == "M2 22.0L7 2.0M27 22.0L32 2.0"
    (alone,) = re.findall(r'<path class="alone" d="([^"]+)"', drawn)
    assert alone == "M17 2.0h.1"
    assert ".alone " in STYLES
    assert svg.hourly([gap] * 24) == ""


def test_shares_are_drawn_worst_first_and_with_a_minimum_width() -> None:
    drawn = svg.shares([0, 0, 999, 0, 0, 0, 0, 1])
    assert re.findall(r'class="b-(\w+)"', drawn) == ["here", "passed"]
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', drawn)]
    assert min(widths) == 2.0
    for kind in ("unknown", "skipped", "passed", "stale", "elsewhere", "ours", "somewhere", "here"):
        assert f".b-{kind} " in STYLES
