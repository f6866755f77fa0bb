"""How far a prediction may be off, on a logarithmic scale: scatter of runs, and differences of systems."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import scipy  # loads its parts when they are used

# Errors of total I/O times in per cent, of two interfaces on six systems, predicted from a seventh by IOR.
# Source: M. R. Meswani, M. A. Laurenzano, L. Carrington, A. Snavely, Modeling and Predicting Disk I/O Time of
# HPC Applications, DoD HPCMP Users Group Conference (2010).
PUBLISHED_ERRORS = (
    *(-45.38, 12.75, -16.85, 13.69, 30.06, 8.17),
    *(-42.87, 12.55, -22.08, 17.59, 55.74, -8.65),
)
LEAST_SYSTEMS = 3  # that the own errors of a workload are learned from
_MOST_DEGREES = 1e6  # more make no difference


@dataclass(frozen=True)
class VarianceTerm:
    """A *variance* of logarithms that was estimated with this many *degrees* of freedom."""

    variance: float
    degrees: float


@dataclass(frozen=True)
class LogScale:
    """Student's distribution of the logarithm of actual / predicted, around 0."""

    scale: float
    degrees: float

    def factor(self, probability: float) -> float:
        """Return the quantile of actual / predicted at *probability*."""
        degrees = min(self.degrees, _MOST_DEGREES)
        return math.exp(self.scale * float(scipy.special.stdtrit(degrees, probability)))


def combined(terms: Sequence[VarianceTerm]) -> LogScale:
    """Return the distribution of the sum of independent terms.

    The degrees of freedom are those of B. L. Welch (Biometrika 34, 1947) and F. E. Satterthwaite (Biometrics
    2, 1946).
    """
    total = math.fsum(term.variance for term in terms)
    parts = math.fsum(term.variance**2 / term.degrees for term in terms)
    return LogScale(math.sqrt(total), total**2 / parts if parts else math.inf)


def between_published(errors: Sequence[float] = PUBLISHED_ERRORS) -> VarianceTerm:
    """Return the term of differences between systems that published *errors*, in per cent, show.

    The variance is that of one more error.
    """
    logarithms = [math.log1p(error / 100.0) for error in errors]
    n = len(logarithms)
    return VarianceTerm(statistics.variance(logarithms) * (1.0 + 1.0 / n), n - 1)


def between_systems(fidelities: Sequence[float]) -> VarianceTerm:
    """Return the term of differences between systems, from the ratio application / replay on each.

    A prediction multiplies the replay's time by the ratio on the reference; its error is the difference of
    two logarithms of ratios. Fewer than ``LEAST_SYSTEMS`` systems do not tell it: published errors count.
    """
    if len(fidelities) < LEAST_SYSTEMS:
        return between_published()
    variance = statistics.variance([math.log(ratio) for ratio in fidelities])
    return VarianceTerm(2.0 * variance, len(fidelities) - 1)
