"""The charts of a comparison: few points, with the extremes of all values."""

from __future__ import annotations

import re
from datetime import UTC

import numpy as np

from monitor.depot.samples.lags import Values
from monitor.web.charts.compare_svg import MOST_POINTS, overlay


def test_a_line_of_many_values_has_few_points_and_keeps_the_extremes() -> None:
    value = np.sin(np.arange(50_000) / 500)
    value[12_345] = 3.0  # one value among thousands
    time = np.arange(len(value), dtype=np.int64) * 60_000_000
    drawn = overlay([("circle", Values(time, value))], UTC)
    (line,) = re.findall(r'points="([^"]*)"', drawn)
    heights = [float(point.partition(",")[2]) for point in line.split()]
    assert len(heights) <= MOST_POINTS
    assert heights.count(min(heights)) == 1  # the top is drawn, and nothing else is near it
    assert sorted(heights)[1] - min(heights) > 20
