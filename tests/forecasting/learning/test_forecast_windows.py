from __future__ import annotations

import random

import pytest

from forecasting.learning.windows import SortedWindow, median_of_sorted


def test_a_window_holds_the_last_values_sorted_through_ties_and_replacements() -> None:
    draw = random.Random(5)
    values = [float(draw.randrange(6)) for _ in range(200)]
    window = SortedWindow(7)
    for count, value in enumerate(values, start=1):
        window.add(value)
        last = values[max(0, count - 7) : count]
        assert (list(window.recent), window.ordered, len(window)) == (last, sorted(last), len(last))


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [2.0]), (2, [2.0, 9.0]), (3, [1.0, 2.0, 9.0]), (8, [1.0, 2.0, 9.0])]
)
def test_the_last_few_come_sorted(count: int, expected: list[float]) -> None:
    window = SortedWindow(3)
    for value in (5.0, 1.0, 9.0, 2.0):
        window.add(value)
    assert window.ordered_last(count) == expected


@pytest.mark.parametrize(("ordered", "expected"), [([4.0], 4.0), ([4.0, 5.0], 4.5), ([1.0, 2.0, 9.0], 2.0)])
def test_the_median_of_an_even_count_lies_between_two_values(ordered: list[float], expected: float) -> None:
    assert median_of_sorted(ordered, len(ordered)) == expected
