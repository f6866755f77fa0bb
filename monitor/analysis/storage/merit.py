"""Figures of merit of a storage area: rates per price, capacity and power, lifetime, efficiency of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.analysis.storage.uses import USE_OF, USES

_YEAR_SECONDS = 365.25 * 86_400.0
_MB = 1e6


@dataclass(frozen=True)
class Figure:
    """One figure of merit; *name* is its key in the API."""

    name: str
    title: str
    value: float
    unit: str


@dataclass(frozen=True)
class Efficiency:
    """The rate of a use over that of all parts together."""

    use: str
    share: float
    parts: int
    part_rate: float
    part: str  # the resource with one part; empty: the grid file says the rate

    @property
    def title(self) -> str:
        return USE_OF[self.use].title

    @property
    def unit(self) -> str:
        return USE_OF[self.use].unit


_PER = (  # key of the grid file, suffix of the name, title, unit
    ("price", "price", "per price", "price"),
    ("capacity_gb", "gb", "per GB", "GB"),
    ("power_watts", "watt", "per watt", "W"),
)
_RATES = (  # use, name, title, unit, divisor
    ("sequential_read", "read_mb_per_second", "MB/s read", "MB/s", _MB),
    ("sequential_write", "write_mb_per_second", "MB/s written", "MB/s", _MB),
    ("random_read", "read_iops", "IOPS read", "IOPS", 1.0),
    ("random_write", "write_iops", "IOPS written", "IOPS", 1.0),
)


def figures_of_merit(storage: Mapping[str, Any], rates: Mapping[str, float]) -> list[Figure]:
    """Return the figures for which *storage*, as in a grid file, and *rates* by use have the numbers."""
    figures = []
    price, capacity = storage.get("price"), storage.get("capacity_gb")
    if price and capacity:
        figures.append(Figure("price_per_gb", "Price per GB", price / capacity, "price/GB"))
    for key, suffix, per, unit_per in _PER:
        if not storage.get(key):
            continue
        for use, name, title, unit, divisor in _RATES:
            if use in rates:
                value = rates[use] / divisor / storage[key]
                figures.append(Figure(f"{name}_per_{suffix}", f"{title} {per}", value, f"{unit}/{unit_per}"))
    years = lifetime_years(storage, rates)
    if years is not None:
        figures.append(Figure("lifetime_years", "Lifetime, written without pause", years, "years"))
    return figures


def lifetime_years(storage: Mapping[str, Any], rates: Mapping[str, float]) -> float | None:
    """Return how long large writes without a pause take to use up all write cycles."""
    cycles, capacity, written = (
        storage.get("endurance_cycles"),
        storage.get("capacity_gb"),
        rates.get("sequential_write"),
    )
    if not cycles or not capacity or not written:
        return None
    return float(cycles * capacity * 1e9 / written / _YEAR_SECONDS)


def efficiencies(
    storage: Mapping[str, Any], rates: Mapping[str, float], part_rates: Mapping[str, float]
) -> Sequence[Efficiency]:
    """Return the efficiency of each use of which the rate of one part is known.

    *part_rates* are the rates by use of the resource with one part; rates in the grid file stand in for them.
    """
    parts = storage.get("parts")
    if not parts:
        return []
    found = []
    for use in USES:
        measured = part_rates.get(use.name)
        rate = measured or parts.get(use.part_rate)
        if rate and use.name in rates:
            part = str(parts.get("resource", "")) if measured else ""
            found.append(
                Efficiency(use.name, rates[use.name] / (parts["count"] * rate), parts["count"], rate, part)
            )
    return found
