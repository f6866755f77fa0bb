"""Compare the published figures of a grid with the figures of runs drawn from the simulated weather."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from monitor.testbed.weather.figures import Floats, RuntimeFigures
from monitor.testbed.weather.generator import Draws
from monitor.testbed.weather.profile import TOTALS, Profile

EXTREMES_RUNS = 4000  # minima and maxima are published for about 4,000 runs
SIX_WEEKS_RUNS = 1008  # hourly


@dataclass(frozen=True)
class ComparisonRow:
    """One figure: its published value and its value for drawn runs.

    Attributes:
        published: the published value.
        drawn: the value for runs drawn from the weather.
        tolerance: largest difference that is allowed.
        relative: whether tolerance and difference are fractions of the published value.
    """

    subject: str
    figure: str
    published: float
    drawn: float
    tolerance: float
    relative: bool = True

    @property
    def difference(self) -> float:
        """Return the drawn minus the published value, as a fraction of the published value if *relative*."""
        difference = self.drawn - self.published
        return difference / self.published if self.relative else difference

    @property
    def holds(self) -> bool:
        """Return whether the difference is within the tolerance."""
        return abs(self.difference) <= self.tolerance

    def __str__(self) -> str:
        """Return the comparison as a row of a Markdown table."""
        unit, scale = ("%", 100) if self.relative else ("", 1)
        return (
            f"| {self.subject} | {self.figure} | {self.published:.2f} | {self.drawn:.2f} "
            f"| {scale * self.difference:+.{1 if self.relative else 3}f}{' ' * bool(unit)}{unit} "
            f"| {scale * self.tolerance:g}{' ' * bool(unit)}{unit} | {'yes' if self.holds else 'NO'} |"
        )


def compare(profile: Profile, draws: Draws) -> list[ComparisonRow]:
    """Return a row for each figure of *profile*. *draws* must have at least 4,000 hourly runs."""
    rows: list[ComparisonRow] = []
    for stage, figures in profile.gather.items():
        rows += _runtimes(f"Gather {stage}", figures, draws.gather[stage])
    for total, figures in profile.published.totals.items():
        rows += _runtimes(f"Gather {total}", figures, draws.gather_total(total))
    for name, (mean, stdev) in profile.published.preco.items():
        seconds = draws.preco_total(name) if name in TOTALS else draws.preco[name]
        rows += [
            ComparisonRow(f"PreCo {name}", "mean", mean, float(seconds.mean()), 0.03),
            ComparisonRow(
                f"PreCo {name}", "stdev", stdev, float(seconds.std()), 0.12 if name in TOTALS else 0.1
            ),
        ]
    return [*rows, *_correlations(profile, draws), *_success(profile, draws)]


def _runtimes(subject: str, figures: RuntimeFigures, seconds: Floats) -> list[ComparisonRow]:
    """Compare four figures: mean and deviation of all runs, minimum and maximum of 4,000 runs.

    Each window of 4,000 runs has a minimum and a maximum. The minimum and the maximum that differ most from
    the published values are compared.
    """
    whole = len(seconds) - len(seconds) % EXTREMES_RUNS
    windows = seconds[:whole].reshape(-1, EXTREMES_RUNS)
    low, high = (
        max(extremes, key=lambda extreme: abs(extreme - published))
        for extremes, published in ((windows.min(axis=1), figures.low), (windows.max(axis=1), figures.high))
    )
    return [
        ComparisonRow(subject, "mean", figures.mean, float(seconds.mean()), 0.1),
        ComparisonRow(subject, "stdev", figures.stdev, float(seconds.std()), 0.1),
        ComparisonRow(subject, "min", figures.low, float(low), 0.3),
        ComparisonRow(subject, "max", figures.high, float(high), 0.3),
    ]


def _correlations(profile: Profile, draws: Draws) -> Iterator[ComparisonRow]:
    for total, published in profile.published.correlations.items():
        drawn = np.corrcoef(draws.gather_total(total), draws.preco_total(total))[0, 1]
        yield ComparisonRow(
            "Gather and PreCo", f"correlation of {total}", published, float(drawn), 0.1, relative=False
        )


def _success(profile: Profile, draws: Draws) -> Iterator[ComparisonRow]:
    for probe, published in profile.published.passed.items():
        drawn = draws.passed[probe][:SIX_WEEKS_RUNS].mean()
        yield ComparisonRow(probe, "success over six weeks", published, float(drawn), 0.03, relative=False)
