"""Predict each system from each other one where both ran, and compare with what the application took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from forecasting.elsewhere.abstained import Code, NoPrediction
from forecasting.elsewhere.fidelity import require_faithful
from forecasting.elsewhere.prediction import LEAST_PAIRS, predict_classes, spread
from forecasting.elsewhere.runs import RunPair, SystemRuns

LEVEL = 0.9


@dataclass(frozen=True)
class PairErrors:
    """How well runs on *target* were predicted from *reference*.

    Attributes:
        n: how many runs on the target were predicted.
        median_error: of the single runs, (predicted - actual) / actual.
        mean_error: the same for the means over all runs.
        class_errors: the mean error of each class.
        coverage: the share of the runs inside their intervals of the level ``LEVEL``.
        refused: why there is no prediction; then all errors are None.
    """

    reference: str
    target: str
    n: int = 0
    median_error: float | None = None
    mean_error: float | None = None
    class_errors: dict[str, float] | None = None
    coverage: float | None = None
    refused: Code | None = None
    reason: str = ""


def evaluate(systems: Sequence[SystemRuns]) -> list[PairErrors]:
    """Return the errors for each ordered pair of *systems*.

    Each run on the target is predicted from the pair of runs on the reference that is nearest in time, and
    from its own nearest replay. Whether replays are faithful, and how much systems differ, is judged by all
    systems but the target.
    """
    found = []
    for reference, target in permutations(systems, 2):
        others = [system for system in systems if system not in (reference, target)]
        try:
            errors = _errors(reference, target, others)
        except NoPrediction as refused:
            errors = PairErrors(reference.name, target.name, refused=refused.code, reason=str(refused))
        found.append(errors)
    return found


def _errors(
    reference: SystemRuns,
    target: SystemRuns,
    others: Sequence[SystemRuns],
) -> PairErrors:
    for system in (reference, target):
        if len(system.pairs) < LEAST_PAIRS:
            raise NoPrediction(
                "no_replay",
                f"on {system.name} {len(system.pairs)} runs of the application have a replay near in time; "
                f"expected at least {LEAST_PAIRS}",
            )
    require_faithful([reference, *others])
    reach = spread(reference, target, others, pairs_used=1, replays_used=1).factor((1.0 + LEVEL) / 2.0)
    actual = target.pairs
    rows = [_predicted(reference.pairs, pair) for pair in actual]
    predicted = [math.fsum(row.values()) for row in rows]
    taken = [pair.application.seconds for pair in actual]
    logarithms = [math.log(each / seconds) for each, seconds in zip(predicted, taken, strict=True)]
    return PairErrors(
        reference.name,
        target.name,
        n=len(taken),
        median_error=math.expm1(statistics.median(logarithms)),
        mean_error=_error(predicted, taken),
        class_errors={
            name: _error([row.get(name, 0.0) for row in rows], [_seconds(pair, name) for pair in actual])
            for name in rows[0]
        },
        coverage=statistics.fmean(abs(each) <= math.log(reach) for each in logarithms),
    )


def _predicted(known: Sequence[RunPair], pair: RunPair) -> dict[str, float]:
    """Return the predicted seconds of the application's run of *pair*, by class."""
    started = pair.application.started_at_seconds
    near = min(known, key=lambda other: abs(other.application.started_at_seconds - started))
    moved = RunPair(near.application.moving(pair.application), near.replay.moving(pair.application))
    return {each.name: each.seconds for each in predict_classes([moved], [pair.replay])}


def _seconds(pair: RunPair, name: str) -> float:
    return pair.application.classes[name].seconds if name in pair.application.classes else 0.0


def _error(predicted: Sequence[float], actual: Sequence[float]) -> float:
    total = math.fsum(actual)
    return math.fsum(predicted) / total - 1.0 if total else 0.0
