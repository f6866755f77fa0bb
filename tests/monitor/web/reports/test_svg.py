"""Charts of reports: positions worked by hand, and texts from outside escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np

from monitor.analysis.performance.sigma_histogram import sigma_histogram
from monitor.web.reports import svg
from monitor.web.reports.normalised import NormalisedLine

HOSTILE = '<script>alert("1")</script>&'


def attributes(drawn: str, tag: str, kind: str) -> list[dict[str, str]]:
    return [element.attrib for element in ET.fromstring(drawn).iter(tag) if element.get("class") == kind]


def texts(drawn: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(drawn).iter("text")]


def bars(values: list[float | None]) -> str:
    shown = ["-" if value is None else f"{value:g}" for value in values]
    column = svg.BarColumn("runs", "here", values, shown)
    return svg.bars([f"row {number}" for number in range(len(values))], [column], "a chart")


def test_bars_are_as_long_as_their_values() -> None:
    first, second = (float(bar["width"]) for bar in attributes(bars([10.0, 2.5]), "rect", "k-here"))
    assert first / second == 4.0


def test_a_negative_bar_ends_where_positive_ones_begin() -> None:
    negative, positive = attributes(bars([-5.0, 10.0]), "rect", "k-here")
    assert float(negative["x"]) + float(negative["width"]) == float(positive["x"])


def test_a_missing_value_has_no_bar_and_its_text() -> None:
    drawn = bars([None, 3.0])
    assert len(attributes(drawn, "rect", "k-here")) == 1
    assert texts(drawn) == ["row 0", "-", "row 1", "3"]


def test_bars_without_any_value_are_drawn() -> None:
    assert texts(bars([None, None])) == ["row 0", "-", "row 1", "-"]
    assert texts(bars([0.0])) == ["row 0", "0"]


def test_a_histogram_has_a_bar_for_each_class_with_runs() -> None:
    found = sigma_histogram(np.array([1.0, 2.0, 3.0, 2.0]))  # mean 2, deviation 0.816: -1.22, 0, 0, 1.22
    drawn = svg.histograms([("Total (i)", "4 runs", found)], "a histogram")
    heights = [float(bar["height"]) for bar in attributes(drawn, "rect", "k-here")]
    assert len(heights) == 3
    assert heights[1] == 2 * heights[0] == 2 * heights[2]
    assert {"Total (i)", "4 runs", "mean", "standard deviations"} <= set(texts(drawn))


def test_an_outlier_is_drawn_in_the_open_class() -> None:
    found = sigma_histogram(np.array([1.0] * 40 + [100.0]))
    assert found.classes[-1].upper is None
    drawn = svg.histograms([("Total (i)", "41 runs", found)], "a histogram")
    last = attributes(drawn, "rect", "k-here")[-1]
    assert float(last["x"]) + float(last["width"]) <= svg.WIDTH


def test_lines_extend_over_the_time_of_both() -> None:
    first = NormalisedLine("preco", 2, [0.0, 100.0], [-1.0, 1.0])
    second = NormalisedLine("gather", 2, [50.0, 200.0], [1.0, -1.0])
    drawn = svg.lines([("here", first), ("other", second)], "a chart")
    points = {
        kind: [
            tuple(map(float, point.split(",")))
            for point in attributes(drawn, "polyline", f"k-{kind}-line")[0]["points"].split()
        ]
        for kind in ("here", "other")
    }
    (left, low), (middle, high) = points["here"]
    (quarter, _), (right, _) = points["other"]
    assert (middle - left, quarter - left) == ((right - left) / 2, (right - left) / 4)
    assert low > high  # downwards
    assert attributes(drawn, "polyline", "k-other-line")[0]["stroke-dasharray"] != "none"


def test_one_point_of_time_is_drawn() -> None:
    line = NormalisedLine("preco", 2, [5.0, 5.0], [-1.0, 1.0])
    assert "1970-01-01 00:00" in texts(svg.lines([("here", line)], "a chart"))


def test_texts_from_outside_are_escaped_and_long_ones_shortened() -> None:
    column = svg.BarColumn("runs", "here", [1.0], [HOSTILE])
    drawn = svg.bars([HOSTILE + "x" * 100], [column], HOSTILE)
    assert "<script>" not in drawn
    label, value = ET.fromstring(drawn).iter("text")
    assert value.text == HOSTILE
    assert "".join(label.itertext()).endswith("…")
    assert re.search(r"<title>[^<]*x{100}</title>", drawn)
