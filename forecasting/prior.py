"""What other series teach about a new one: a prior for the weights of experts.

A new series has no record. Series of the same metric have one: how large the errors of each expert were
relative to those of the other experts. The prior counts like a few values of the new series itself, so it
fades (empirical Bayes: Robbins, "An empirical Bayes approach to statistics", Third Berkeley Symposium, 1956;
for forecasts of many short series Montero-Manso, Hyndman, "Principles and algorithms for forecasting groups
of time series", International Journal of Forecasting 37, 2021). The spread begins without a prior: errors
relative to the values differ too much between series, and intervals that began with them were worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

MIN_VALUES = 30  # of a series that teaches
MAX_SERIES = 8  # that teach one prior

LossesByExpert = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Prior:
    """What series with a record teach.

    Attributes:
        absolute: the mean loss of each forecast of each expert, in median losses; for absolute errors.
        squared: the same for squared errors.
    """

    VERSION: ClassVar[int] = 1
    absolute: dict[str, list[float]]
    squared: dict[str, list[float]]

    @classmethod
    def pooled(cls, priors: Iterable[Prior]) -> Prior | None:
        """Return the mean of *priors*, of which at most ``MAX_SERIES`` are used; None if there are none."""
        used = list(priors)[:MAX_SERIES]
        if not used:
            return None
        return cls(
            _mean_losses([prior.absolute for prior in used]),
            _mean_losses([prior.squared for prior in used]),
        )


def _mean_losses(losses: Sequence[LossesByExpert]) -> dict[str, list[float]]:
    """Return the mean losses of the experts that all of *losses* have, with equal numbers of forecasts."""
    means = {}
    for name in losses[0]:
        of_expert = [each[name] for each in losses if name in each]
        if len(of_expert) == len(losses) and len({len(each) for each in of_expert}) == 1:
            means[name] = [fmean(column) for column in zip(*of_expert, strict=True)]
    return means
