"""Priors for a backtest: what the histories of other series teach about a new series.

Only runs known at the first start of the new series teach, if both are of the files that are evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from forecasting.prior import MAX_SERIES, MIN_VALUES, Prior
from forecasting.reading.histories import RunHistory
from forecasting.series import Forecaster, Observation

_METHOD = "blend"
_MAX_VALUES = 300  # of a series that teaches, its newest


@dataclass(frozen=True)
class Teachers:
    """The histories that teach: *earlier* are known from the beginning, *beside* as their runs end."""

    earlier: Sequence[RunHistory] = ()
    beside: Sequence[RunHistory] = ()

    def prior(self, target: RunHistory) -> Prior | None:
        """Return the prior for *target*: from histories of its metric, nearest first; None if there are none.

        Histories of a series of the same name are nearest, then those of the same group.
        """
        first_seconds = min(observation.time_seconds for observation in target.observations)
        candidates = [(history, history.observations) for history in self.earlier]
        candidates += [
            (history, [each for each in history.observations if each.known_at_seconds <= first_seconds])
            for history in self.beside
            if history is not target
        ]
        similar = [
            (history, known)
            for history, known in candidates
            if history.source.metric == target.source.metric and len(known) > MIN_VALUES
        ]
        similar.sort(key=lambda each: (*_distance(target, each[0]), -len(each[1])))
        taught = (_taught(known) for _, known in similar)
        return Prior.pooled(islice(filter(None, taught), MAX_SERIES))


def _distance(target: RunHistory, other: RunHistory) -> tuple[bool, bool, bool]:
    return (
        other.source.series != target.source.series,
        other.group != target.group,
        other.kind != target.kind,
    )


def _taught(observations: Sequence[Observation]) -> Prior | None:
    forecaster = Forecaster(_METHOD)
    newest = sorted(observations, key=lambda each: each.known_at_seconds)[-_MAX_VALUES:]
    for observation in newest:
        forecaster.observe(observation)
    forecaster.learn_until(newest[-1].known_at_seconds)
    return forecaster.prior()
