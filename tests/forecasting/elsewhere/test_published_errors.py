"""The published errors of predictions by IOR, and what intervals they allow.

Source: M. R. Meswani, M. A. Laurenzano, L. Carrington, A. Snavely, Modeling and Predicting Disk I/O Time of
HPC Applications (2010): tables of errors and of relative standard deviations, per cent. The means are
printed there; how many intervals hold is computed from the cells.
"""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

import pytest

from forecasting.elsewhere.uncertainty import (
    PUBLISHED_ERRORS,
    LogScale,
    VarianceTerm,
    between_published,
    between_systems,
    combined,
)

READ, WRITE, TOTAL = range(3)


class Cell(NamedTuple):
    """A system and interface: errors of reads, writes and totals, and the deviations of MADbench and IOR."""

    system: str
    interface: str
    errors: tuple[float, float, float]
    application: tuple[float, float, float]
    replay: tuple[float, float, float]


REFERENCE = {
    "POSIX": Cell("Jade", "POSIX", (0, 0, 0), (4.32, 6.15, 4.78), (5.94, 9.52, 6.48)),
    "MPI-IO": Cell("Jade", "MPI-IO", (0, 0, 0), (3.79, 5.56, 4.19), (7.21, 9.52, 7.88)),
}
CELLS = [
    Cell("Diamond", "POSIX", (-68.68, 17.81, -45.38), (5.06, 12.34, 3.03), (30.12, 4.90, 9.80)),
    Cell("Sapphire", "POSIX", (18.27, 1.61, 12.75), (9.41, 8.48, 8.48), (4.64, 6.23, 4.90)),
    Cell("Pingo", "POSIX", (-62.82, 2.38, -16.85), (6.55, 4.01, 4.50), (14.62, 12.50, 12.23)),
    Cell("Einstein", "POSIX", (37.60, 11.46, 13.69), (6.89, 4.34, 5.19), (6.12, 4.33, 4.84)),
    Cell("Mana", "POSIX", (41.23, 24.94, 30.06), (1.61, 4.37, 2.77), (77.01, 19.70, 21.26)),
    Cell("Jaguar", "POSIX", (16.46, 0.00, 8.17), (7.61, 15.90, 11.25), (23.34, 32.51, 20.30)),
    Cell("Diamond", "MPI-IO", (-64.55, 8.42, -42.87), (5.60, 16.96, 2.05), (38.54, 5.44, 10.75)),
    Cell("Sapphire", "MPI-IO", (16.36, 5.07, 12.55), (4.26, 5.23, 4.55), (7.49, 6.39, 6.84)),
    Cell("Pingo", "MPI-IO", (-70.61, -1.99, -22.08), (5.44, 3.22, 3.27), (15.40, 3.32, 1.89)),
    Cell("Einstein", "MPI-IO", (39.02, 5.06, 17.59), (10.27, 12.05, 11.09), (3.73, 6.56, 4.33)),
    Cell("Mana", "MPI-IO", (54.55, 56.34, 55.74), (2.02, 4.67, 3.13), (101.37, 45.99, 41.11)),
    Cell("Jaguar", "MPI-IO", (3.76, -20.83, -8.65), (6.07, 16.15, 9.44), (25.17, 5.93, 13.36)),
]


@pytest.mark.parametrize(("which", "mean"), [(READ, 41.16), (WRITE, 12.99), (TOTAL, 23.87)])
def test_the_mean_absolute_errors_are_those_printed(which: int, mean: float) -> None:
    assert statistics.fmean(abs(cell.errors[which]) for cell in CELLS) == pytest.approx(mean, abs=0.006)


def test_the_interval_begins_with_the_published_errors_of_totals() -> None:
    assert [cell.errors[TOTAL] for cell in CELLS] == list(PUBLISHED_ERRORS)
    term = between_published()
    assert math.sqrt(term.variance / (1 + 1 / 12)) == pytest.approx(0.318, abs=0.001)
    assert term.degrees == 11


@pytest.mark.parametrize(("which", "held"), [(READ, 7), (WRITE, 12), (TOTAL, 9)])
def test_noise_alone_holds_too_few_of_the_published_errors(which: int, held: int) -> None:
    def noise(cell: Cell) -> LogScale:
        own, other = cell, REFERENCE[cell.interface]
        deviations = (own.application, own.replay, other.application, other.replay)
        return combined([VarianceTerm((each[which] / 100) ** 2, math.inf) for each in deviations])

    inside = [abs(cell.errors[which] / 100) <= 1.645 * noise(cell).scale for cell in CELLS]
    assert sum(inside) == held


@pytest.mark.parametrize(("which", "factor"), [(READ, 3.6), (WRITE, 1.36), (TOTAL, 1.83)])
def test_differences_between_the_other_systems_hold_ten_of_twelve(which: int, factor: float) -> None:
    def between(cell: Cell) -> LogScale:
        others = [other.errors[which] for other in CELLS if other.system != cell.system]
        return combined([between_published(others)])

    factors = [between(cell).factor(0.95) for cell in CELLS]
    off = [abs(math.log1p(cell.errors[which] / 100)) for cell in CELLS]
    assert sum(distance <= math.log(each) for distance, each in zip(off, factors, strict=True)) == 10
    assert statistics.fmean(factors) == pytest.approx(factor, abs=0.01)


def test_own_systems_replace_the_published_errors_from_three_on() -> None:
    assert between_systems([1.0, 1.1]) == between_published()
    term = between_systems([1.0, 1.1, 1.21])
    assert term.degrees == 2
    assert math.sqrt(term.variance) == pytest.approx(math.log(1.1) * math.sqrt(2))


def test_without_any_scatter_the_interval_is_a_point() -> None:
    assert combined([VarianceTerm(0.0, 1.0)]).factor(0.95) == 1.0
