"""Conversion of units to SI units."""

from __future__ import annotations

import pytest

from probes.common.units import si_unit


@pytest.mark.parametrize(
    ("unit", "factor", "si"),
    [
        ("", 1, "count"),
        ("c", 1, "count"),
        ("s", 1, "seconds"),
        ("ms", 1e-3, "seconds"),
        ("us", 1e-6, "seconds"),
        ("ns", 1e-9, "seconds"),
        ("%", 0.01, "ratio"),
        ("B", 1, "bytes"),
        ("KB", 1e3, "bytes"),
        ("kB", 1e3, "bytes"),
        ("MB", 1e6, "bytes"),
        ("GB", 1e9, "bytes"),
        ("TB", 1e12, "bytes"),
        ("MiB", 1024**2, "bytes"),
        ("MB/s", 1e6, "bytes_per_second"),
        ("Mb/s", 125_000, "bytes_per_second"),
        ("Mbps", 125_000, "bytes_per_second"),
        ("GB/sec", 1e9, "bytes_per_second"),
        ("seconds", 1, "seconds"),
        ("rpm", 1, "rpm"),
        ("degrees C", 1, "degrees_C"),
        ("m" * 300, 1, "m" * 50),
    ],
)
def test_units_are_converted_to_si(unit: str, factor: float, si: str) -> None:
    assert si_unit(unit) == (factor, si)
