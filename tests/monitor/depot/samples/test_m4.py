"""Downsampled points keep every extreme and add nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from monitor.depot.samples.m4 import LEAST_POINTS, Bins, bin_values, merge_bins, select_points

Columns = tuple[NDArray[np.int64], NDArray[np.float64]]

values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e300, 1e300))
histories = st.dictionaries(st.integers(-(10**15), 10**15), values, max_size=200).map(
    lambda values_by_time: (
        np.array(sorted(values_by_time), dtype=np.int64),
        np.array([values_by_time[time] for time in sorted(values_by_time)], dtype=float),
    )
)
points = st.integers(LEAST_POINTS, 100)


@given(histories, points)
def test_there_are_at_most_the_requested_points_in_order(history: Columns, most: int) -> None:
    times, _ = history
    indices = select_points(*history, most)
    assert len(indices) <= most
    assert (np.diff(times[indices]) > 0).all()


@given(histories, points)
def test_few_points_are_all_kept(history: Columns, most: int) -> None:
    if len(history[0]) <= most:
        assert select_points(*history, most).tolist() == list(range(len(history[0])))


@given(histories, points)
def test_the_extremes_and_both_ends_are_kept(history: Columns, most: int) -> None:
    times, measured = history
    indices = select_points(*history, most)
    if len(times):
        assert {0, len(times) - 1} <= set(indices.tolist())
        assert measured[indices].min() == measured.min()
        assert measured[indices].max() == measured.max()


@given(histories, points)
def test_every_bin_keeps_its_extremes(history: Columns, most: int) -> None:
    times, measured = history
    if len(times) <= most:
        return
    indices = select_points(*history, most)
    bin_of = (times - times[0]) * (most // 4) // (times[-1] - times[0] + 1)
    for number in set(bin_of.tolist()):
        shown = measured[indices][bin_of[indices] == number]
        of_all = measured[bin_of == number]
        assert (shown.min(), shown.max()) == (of_all.min(), of_all.max())


def test_of_equal_extremes_the_first_is_kept() -> None:
    assert select_points(np.arange(8), np.array([5.0, 9, 1, 9, 1, 9, 5, 5]), 4).tolist() == [0, 1, 2, 7]


@given(histories, st.integers(1, 10**14))
def test_every_value_is_in_its_bin(history: Columns, span: int) -> None:
    times, measured = history
    bins = bin_values(times, measured, span)
    assert bins.start.tolist() == sorted({time // span * span for time in times.tolist()})
    for number, start in enumerate(bins.start.tolist()):
        inside = measured[(times >= start) & (times < start + span)]
        actual = (bins.n[number], bins.lowest[number], bins.highest[number])
        assert actual == (len(inside), inside.min(), inside.max())
        assert bins.mean[number] == pytest.approx((inside / len(inside)).sum(), rel=1e-9, abs=1e290)


@given(histories, points)
def test_merged_bins_equal_longer_bins(history: Columns, most: int) -> None:
    span = 10**13
    bins = bin_values(*history, span)
    fewer, length = merge_bins(bins, span, most)
    assert len(fewer) <= most
    assert length % span == 0
    assert fewer.n.sum() == len(history[0])
    assert (np.diff(fewer.start) >= length).all()
    if len(bins):
        again = bin_values(history[0] - bins.start[0], history[1], length)
        check_equal(again, fewer, shift=int(bins.start[0]))


def check_equal(first: Bins, second: Bins, *, shift: int) -> None:
    assert (first.start + shift).tolist() == second.start.tolist()
    for name in ("n", "lowest", "highest"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    assert first.mean.tolist() == pytest.approx(second.mean.tolist(), rel=1e-9, abs=1e290)
