"""Totals in standard deviations from their mean, in order of time."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.analysis.performance.passed_runs import PassedRuns
from monitor.web.reports.normalised import MOST_POINTS, normalised


def runs(starts: list[int], totals: list[float]) -> PassedRuns:
    times = np.array(starts, np.int64) * 1_000_000
    column = {"total.seconds": np.array(totals)}
    return PassedRuns(times, times, times, np.ones(len(starts), np.int64), column)


def test_a_total_is_normalised_by_hand() -> None:
    # mean 6, squared deviations 16 + 0 + 16, sample standard deviation 4
    line = normalised("gather", runs([20, 10, 30], [6.0, 2.0, 10.0]), "total.seconds")
    assert line is not None
    assert (line.series, line.n) == ("gather", 3)
    assert line.seconds == [10.0, 20.0, 30.0]
    assert line.sigmas == pytest.approx([-1.0, 0.0, 1.0])


def test_runs_without_the_total_are_left_out() -> None:
    line = normalised("gather", runs([1, 2, 3], [1.0, float("nan"), 3.0]), "total.seconds")
    assert line is not None
    assert (line.n, line.seconds) == (2, [1.0, 3.0])


@pytest.mark.parametrize("totals", [[], [4.0], [4.0, 4.0, 4.0], [float("nan"), 4.0]])
def test_without_a_spread_there_is_no_line(totals: list[float]) -> None:
    assert normalised("gather", runs(list(range(len(totals))), totals), "total.seconds") is None
    assert normalised("gather", runs([1, 2], [1.0, 2.0]), "total_core.seconds") is None


def test_many_runs_are_reduced_and_extremes_stay() -> None:
    totals = [1.0, 2.0] * 5000
    totals[7777] = 50.0
    line = normalised("gather", runs(list(range(10_000)), totals), "total.seconds")
    assert line is not None
    assert (line.n, len(line.sigmas) <= MOST_POINTS) == (10_000, True)
    assert line.seconds[int(np.argmax(line.sigmas))] == 7777.0
