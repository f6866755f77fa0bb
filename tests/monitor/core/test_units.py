"""Numbers formatted for people."""

from __future__ import annotations

import pytest

from monitor.core import units


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "seconds", "0.00 s"),
        (0.4249, "seconds", "0.42 s"),
        (11.84, "seconds", "11.8 s"),
        (599.94, "seconds", "599.9 s"),
        (750.0, "seconds", "12 min 30 s"),
        (3600.0, "seconds", "1 h"),
        (11_100.0, "seconds", "3 h 05 min"),
        (90_000.0, "seconds", "1 d 01 h"),
        (-0.5, "seconds", "-0.50 s"),
        (12_345_678.0, "bytes_per_second", "12.3 MB/s"),
        (999.0, "bytes", "999 B"),
        (100_000_000, "bytes", "100 MB"),
        (5e12, "bytes", "5 TB"),
        (1234, "count", "1,234"),
        (0.87, "correlation", "0.87 correlation"),
        (3.5e9, "flops_per_second", "3.5 G flops/s"),
        (71_432.0, "operations_per_second", "71.4 k operations/s"),
        (12.0, "operations_per_second", "12 operations/s"),
        (0.452, "ratio", "45.2 %"),
        (0.000_085_3, "seconds", "85.3 us"),
        (0.0042, "seconds", "4.2 ms"),
    ],
)
def test_a_number_has_a_suitable_prefix_and_unit(value: float, unit: str, text: str) -> None:
    assert units.humanised(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "now"),
        (40.9, "40 s ago"),
        (61, "1 min ago"),
        (7300, "2 h ago"),
        (200_000, "2 d ago"),
        (930_000_000, "29 years ago"),
        (-40, "in 40 s"),
    ],
)
def test_an_age_is_formatted_in_its_largest_unit(seconds: float, text: str) -> None:
    assert units.age(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (0.1, "0.1"), (1e22, "1e+22"), (2 / 3, "0.6666666666666666")]
)
def test_an_exact_number_parses_to_the_same_number(value: float, text: str) -> None:
    assert units.exact(value) == text
    assert float(units.exact(value)) == value


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (0.001, "< 1 %"), (0.58, "58 %"), (0.9999, "> 99 %"), (1, "100 %")]
)
def test_only_zero_and_one_are_rounded_to_zero_and_hundred_percent(share: float, text: str) -> None:
    assert units.percent(share) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, 10.66, "0.0 to 10.7 s"),
        (0.05, 0.7, "0.05 to 0.70 s"),
        (9.7, 24.1, "9.7 to 24.1 s"),
        (0.0011, 0.0042, "1.1 ms to 4.2 ms"),
        (84.7, 645.0, "84.7 s to 10 min 45 s"),
        (-1.0, 2.0, "-1.0 to 2.0 s"),
    ],
)
def test_a_range_of_seconds_has_the_digits_of_its_larger_end(low: float, high: float, text: str) -> None:
    assert units.seconds_range(low, high) == text
