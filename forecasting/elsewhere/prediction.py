"""The prediction: the sum over classes of replay(target) / replay(reference) x application(reference).

Source: the paper that ``uncertainty`` names, which plays IOR instead of a replay.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from forecasting.elsewhere.abstained import NoPrediction
from forecasting.elsewhere.class_ratio import ClassRatio
from forecasting.elsewhere.fidelity import fidelity, require_faithful
from forecasting.elsewhere.runs import IoRun, RunPair, SystemRuns, fresh_until, scatter
from forecasting.elsewhere.uncertainty import LogScale, VarianceTerm, between_systems, combined

LEAST_PAIRS = 2  # a single one does not tell how much runs differ
_MOST_REPLAYS = 10  # the newest ones of the target
_SMALL = 0.1  # share of the application's time: the ratio of a smaller class is not its own
_MEDIANS_FROM = 10  # runs: of fewer, a median deviation is too small and varies too much for an interval
_NEGLIGIBLE = 0.01  # share of the application's time: a replay may lack such a class of calls


@dataclass(frozen=True)
class IoPrediction:
    """The predicted seconds of input and output: the median, and how far the actual time may be from it.

    Attributes:
        classes: the parts of the median.
        spread: the distribution of the logarithm of actual / median.
        pairs: how many pairs of runs on the reference it is based on.
        replays: how many replays on the target.
    """

    seconds: float
    classes: Sequence[ClassRatio]
    spread: LogScale
    pairs: int
    replays: int

    def quantile(self, probability: float) -> float:
        return self.seconds * self.spread.factor(probability)


def predict(
    reference: SystemRuns,
    target: SystemRuns,
    others: Sequence[SystemRuns] = (),
    *,
    at_seconds: float | None = None,
) -> IoPrediction:
    """Predict the next run of the application on *target* from its runs on *reference* and from replays.

    *others* are further systems on which both ran: they tell how faithful replays are. *at_seconds* is the
    time of the question (None: replays are never stale).

    Raises:
        NoPrediction: see ``abstained``.
    """
    paired = reference.pairs
    replays = target.replays[-_MOST_REPLAYS:]
    _require_runs(reference, target, paired, replays)
    if at_seconds is not None and at_seconds > fresh_until(target.replays):
        days = (at_seconds - target.replays[-1].started_at_seconds) / 86_400.0
        raise NoPrediction("stale", f"the newest replay on {target.name} is {days:.1f} days old")
    known = [reference, *others]
    require_faithful(known)
    classes = predict_classes(paired, replays)
    return IoPrediction(
        math.fsum(each.seconds for each in classes),
        classes,
        spread(reference, target, others, pairs_used=len(paired), replays_used=len(replays)),
        len(paired),
        len(replays),
    )


def predict_classes(paired: Sequence[RunPair], replays: Sequence[IoRun]) -> list[ClassRatio]:
    """Return the prediction of each class from pairs of runs on the reference and *replays* on the target.

    Over several runs, medians of logarithms count. Where bytes are known, replays count as if they had moved
    the application's bytes. A class that takes less than a tenth of the time on the reference has the ratio
    of application to replay that all classes together have: its own ratio is mostly noise.

    Raises:
        NoPrediction: there are no pairs, a replay lacks a class of the application, or replays took no time.
    """
    overall = fidelity(paired)
    if overall is None:
        raise NoPrediction("no_replay", "no run of the application has a replay near in time")
    newest = paired[-1].application
    moved = [replay.moving(newest) for replay in replays]
    classes = [
        _predicted(name, share, paired, moved, overall.ratio)
        for name, share in _shares(paired, replays).items()
    ]
    if not any(each.seconds for each in classes):
        raise NoPrediction("no_replay", "the replays on the target took no time")
    return classes


def _shares(paired: Sequence[RunPair], replays: Sequence[IoRun]) -> dict[str, float]:
    """Return the share of each class in the application's time on the reference.

    Raises NoPrediction if one of *replays*, or of *paired*, lacks a class whose share is not negligible.
    """
    total = math.fsum(pair.application.seconds for pair in paired)
    names = sorted({name for pair in paired for name in pair.application.classes})
    shares = {name: math.fsum(_seconds(pair.application, name) for pair in paired) / total for name in names}
    replayed = [*(pair.replay for pair in paired), *replays]
    for name, share in shares.items():
        if share > _NEGLIGIBLE and any(name not in replay.classes for replay in replayed):
            raise NoPrediction("no_replay", f"a replay has no calls of the class {name}")
    return shares


def _predicted(
    name: str, share: float, paired: Sequence[RunPair], replays: Sequence[IoRun], overall: float
) -> ClassRatio:
    own = [(_seconds(pair.application, name), _seconds(pair.replay, name)) for pair in paired]
    reference = statistics.median(application for application, _ in own)
    logarithms = [math.log(application / replay) for application, replay in own if application > 0.0 < replay]
    faithful = math.exp(statistics.median(logarithms)) if share >= _SMALL and logarithms else overall
    replayed = statistics.median(_seconds(replay, name) for replay in replays)
    seconds = faithful * replayed if reference > 0.0 else 0.0
    return ClassRatio(name, reference, seconds / reference if reference > 0.0 else 0.0, seconds)


def _seconds(run: IoRun, name: str) -> float:
    return run.classes[name].seconds if name in run.classes else 0.0


def spread(
    reference: SystemRuns,
    target: SystemRuns,
    others: Sequence[SystemRuns],
    *,
    pairs_used: int,
    replays_used: int,
) -> LogScale:
    """Return how far the actual time of one run may be from the prediction.

    The terms are the scatter of the runs on the reference and of the replays on both systems, that of the run
    to come, and the differences between systems. The run to come scatters as runs do on the reference, or as
    replays do on the target if that is more: where the target is less steady, they alone show it.
    """
    application = _scatter_term(reference.applications)
    reference_replay = _scatter_term(reference.replays)
    target_replay = _scatter_term(target.replays) if len(target.replays) > 1 else reference_replay
    fidelities = [known.ratio for system in (reference, *others) if (known := fidelity(system.pairs))]
    return combined(
        [
            max(application, target_replay, key=lambda term: term.variance),
            VarianceTerm(application.variance / pairs_used, application.degrees),
            VarianceTerm(reference_replay.variance / pairs_used, reference_replay.degrees),
            VarianceTerm(target_replay.variance / replays_used, target_replay.degrees),
            between_systems(fidelities),
        ]
    )


def _scatter_term(runs: Sequence[IoRun]) -> VarianceTerm:
    logarithms = [math.log(run.moving(runs[-1]).seconds) for run in runs if run.seconds > 0.0]
    found = scatter(logarithms, medians_from=_MEDIANS_FROM)
    return VarianceTerm(0.0, 1.0) if found is None else VarianceTerm(found**2, len(logarithms) - 1)


def _require_runs(
    reference: SystemRuns, target: SystemRuns, paired: Sequence[RunPair], replays: Sequence[IoRun]
) -> None:
    if not replays:
        raise NoPrediction("no_replay", f"no replay has run on {target.name}")
    if len(paired) < LEAST_PAIRS:
        raise NoPrediction(
            "no_replay",
            f"on {reference.name} {len(paired)} of {len(reference.applications)} runs of the application "
            f"have a replay near in time; expected at least {LEAST_PAIRS}",
        )
