"""Fewer points show the same: no extreme is lost, and nothing is made up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from monitor.depot.samples.m4 import LEAST_POINTS, Rolled, kept, merged, rolled_up

Columns = tuple[NDArray[np.int64], NDArray[np.float64]]

values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e300, 1e300))
histories = st.dictionaries(st.integers(-(10**15), 10**15), values, max_size=200).map(
    lambda found: (
        np.array(sorted(found), dtype=np.int64),
        np.array([found[time] for time in sorted(found)], dtype=float),
    )
)
points = st.integers(LEAST_POINTS, 100)


@given(histories, points)
def test_there_are_no_more_points_than_were_asked_for_and_they_are_in_order(
    history: Columns, most: int
) -> None:
    times, _ = history
    indices = kept(*history, most)
    assert len(indices) <= most
    assert (np.diff(times[indices]) > 0).all()


@given(histories, points)
def test_what_fits_is_kept_as_it_is(history: Columns, most: int) -> None:
    if len(history[0]) <= most:
        assert kept(*history, most).tolist() == list(range(len(history[0])))


@given(histories, points)
def test_the_extremes_and_both_ends_are_kept(history: Columns, most: int) -> None:
    times, measured = history
    indices = kept(*history, most)
    if len(times):
        assert {0, len(times) - 1} <= set(indices.tolist())
        assert measured[indices].min() == measured.min()
        assert measured[indices].max() == measured.max()


@given(histories, points)
def test_every_stretch_keeps_its_own_extremes(history: Columns, most: int) -> None:
    times, measured = history
    if len(times) <= most:
        return
    indices = kept(*history, most)
    stretch = (times - times[0]) * (most // 4) // (times[-1] - times[0] + 1)
    for number in set(stretch.tolist()):
        shown = measured[indices][stretch[indices] == number]
        of_all = measured[stretch == number]
        assert (shown.min(), shown.max()) == (of_all.min(), of_all.max())


def test_of_equal_extremes_the_first_is_kept() -> None:
    assert kept(np.arange(8), np.array([5.0, 9, 1, 9, 1, 9, 5, 5]), 4).tolist() == [0, 1, 2, 7]


@given(histories, st.integers(1, 10**14))
def test_a_rollup_has_every_value_in_its_own_stretch(history: Columns, span: int) -> None:
    times, measured = history
    rolled = rolled_up(times, measured, span)
    assert rolled.start.tolist() == sorted({time // span * span for time in times.tolist()})
    for number, start in enumerate(rolled.start.tolist()):
        inside = measured[(times >= start) & (times < start + span)]
        said = (rolled.n[number], rolled.lowest[number], rolled.highest[number])
        assert said == (len(inside), inside.min(), inside.max())
        assert rolled.mean[number] == pytest.approx((inside / len(inside)).sum(), rel=1e-9, abs=1e290)


@given(histories, points)
def test_merged_rollups_are_the_rollup_of_longer_stretches(history: Columns, most: int) -> None:
    span = 10**13
    rolled = rolled_up(*history, span)
    fewer, length = merged(rolled, span, most)
    assert len(fewer) <= most
    assert length % span == 0
    assert fewer.n.sum() == len(history[0])
    assert (np.diff(fewer.start) >= length).all()
    if len(rolled):
        again = rolled_up(history[0] - rolled.start[0], history[1], length)
        same(again, fewer, shift=int(rolled.start[0]))


def same(first: Rolled, second: Rolled, *, shift: int) -> None:
    assert (first.start + shift).tolist() == second.start.tolist()
    for name in ("n", "lowest", "highest"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    assert first.mean.tolist() == pytest.approx(second.mean.tolist(), rel=1e-9, abs=1e290)
