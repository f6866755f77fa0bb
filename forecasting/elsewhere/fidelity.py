"""Does a replay take as long as its application? A prediction by an unfaithful replay is refused."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from forecasting.elsewhere.abstained import NoPrediction
from forecasting.elsewhere.runs import RunPair, SystemRuns, scatter

LOWEST, HIGHEST = 0.8, 1.25  # application / replay
MOST_SCATTER = 0.2  # of its logarithm


@dataclass(frozen=True)
class Fidelity:
    """Over *n* pairs of runs: the median *ratio* of the application's time to the replay's, and the *scatter*
    of its logarithm (None for one pair)."""

    n: int
    ratio: float
    scatter: float | None


def fidelity(paired: Sequence[RunPair]) -> Fidelity | None:
    """Return the fidelity of the replays of *paired*; None if there are none."""
    if not paired:
        return None
    logarithms = [math.log(pair.application.seconds / pair.replay.seconds) for pair in paired]
    return Fidelity(len(logarithms), math.exp(statistics.median(logarithms)), scatter(logarithms))


def require_faithful(systems: Sequence[SystemRuns]) -> None:
    """Raise NoPrediction if the replay was unfaithful on one of *systems*; those without pairs count not."""
    for system in systems:
        known = fidelity(system.pairs)
        if known is None:
            continue
        if not LOWEST <= known.ratio <= HIGHEST:
            raise NoPrediction(
                "unfaithful",
                f"on {system.name} the application takes {known.ratio:.2f} times as long as its replay; "
                f"expected {LOWEST} to {HIGHEST}",
            )
        if known.scatter is not None and known.scatter > MOST_SCATTER:
            raise NoPrediction(
                "unfaithful",
                f"on {system.name} the ratio of the application's time to that of its replay scatters by "
                f"{known.scatter:.2f} (logarithm); expected at most {MOST_SCATTER}",
            )
