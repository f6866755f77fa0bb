"""The study of two grids, repeated: how far off forecasts of an application are by its history, by a probe
that ran before it, and by both.

Seven methods forecast seven metrics of each run of an application when it starts. *TSP* is the NWS battery on
the application's own history. *LRP* is a straight line through pairs of application and probe, applied to the
newest run of the probe; what it is drawn through are all pairs, the last 10, or a fixed first x. *TSP+LRP*
forecasts the probe with the battery to the time asked for, and applies the line to that. A metric of the
application is predicted from the same metric of the probe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecasting.evaluation import metrics
from forecasting.evaluation.rolling_origin import WARM_UP, rolling_origin
from forecasting.reading.histories import RunHistory


@dataclass(frozen=True)
class Studied:
    """A *method* of ours under the *label* it has in the study, and the error of the total published there,
    in percent."""

    label: str
    method: str
    published: float


METHODS = (
    Studied("TSP", "nws", 8.57),
    Studied("LRP full", "lrp", 8.42),
    Studied("LRP last 10", "lrp_last_10", 9.13),
    Studied("LRP fixed first x", "lrp_first", 9.96),
    Studied("TSP+LRP full", "tsp_lrp", 8.99),
    Studied("TSP+LRP last 10", "tsp_lrp_last_10", 9.14),
    Studied("TSP+LRP fixed first x", "tsp_lrp_first", 10.55),
)
METRICS = (
    "stage.transfer_data.seconds",
    "stage.queue_wait.seconds",
    "stage.compute.seconds",
    "stage.transfer_results.seconds",
    "total.seconds",
    "total_essential.seconds",
    "total_core.seconds",
)


@dataclass(frozen=True)
class StudyCell:
    """The mean relative error over *n* runs, and its coefficient of variation; None where there is none."""

    n: int
    relative_error: float | None
    variation: float | None


def error_table(
    histories: Sequence[RunHistory], *, wanted: Sequence[str] = (), warm_up: int = WARM_UP
) -> dict[str, dict[str, StudyCell]]:
    """The cells by metric and by method: over all runs of applications in *histories*, each with each probe
    of its group.

    The metrics are *wanted*, or those of the study that are there, or if none is, all. A run counts, but for
    the first *warm_up* of its series, where each of the seven methods has an answer.
    """
    pairs = list(_pairs(histories))
    there = {target.source.metric for target, _ in pairs}
    shown = wanted or [one for one in METRICS if one in there] or sorted(there)
    return {
        metric: _cells([pair for pair in pairs if pair[0].source.metric == metric], warm_up)
        for metric in shown
    }


def _pairs(histories: Sequence[RunHistory]) -> Iterator[tuple[RunHistory, RunHistory]]:
    """Each metric of each application, with the same metric of each probe of its group."""
    for target in histories:
        for probe in histories:
            alike = (probe.group, probe.source.metric) == (target.group, target.source.metric)
            if alike and (target.kind, probe.kind) == ("application", "probe"):
                yield target, probe


def _cells(pairs: Iterable[tuple[RunHistory, RunHistory]], warm_up: int) -> dict[str, StudyCell]:
    truths: list[NDArray[np.float64]] = []
    said: dict[str, list[NDArray[np.float64]]] = {one.method: [] for one in METHODS}
    for target, probe in pairs:
        truth, medians = _forecasts(target, probe, warm_up)
        truths.append(truth)
        for method, median in medians.items():
            said[method].append(median)
    truth = np.concatenate([np.empty(0), *truths])
    return {method: _cell(truth, np.concatenate([np.empty(0), *parts])) for method, parts in said.items()}


def _forecasts(
    target: RunHistory, probe: RunHistory, warm_up: int
) -> tuple[NDArray[np.float64], Mapping[str, NDArray[np.float64]]]:
    heard = [(probe.source, observation) for observation in probe.observations]
    trails = {one.method: rolling_origin(one.method, target.observations, heard) for one in METHODS}
    truth = next(iter(trails.values())).truth
    counted = np.arange(len(truth)) >= warm_up
    for trail in trails.values():
        counted &= np.isfinite(trail.median)
    return truth[counted], {method: trail.median[counted] for method, trail in trails.items()}


def _cell(truth: NDArray[np.float64], said: NDArray[np.float64]) -> StudyCell:
    return StudyCell(
        len(truth), metrics.relative_error(truth, said), metrics.relative_error_variation(truth, said)
    )
