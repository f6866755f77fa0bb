"""Repeat the study of two grids: the errors of forecasts from own history, from a probe, and from both.

Seven methods forecast seven metrics of each run of an application at its start. *TSP* is the NWS battery on
the application's own history. *LRP* is a straight line through pairs of a probe's and the application's
value, applied to the newest value of the probe; the line is fitted to all pairs, to the last 10, or to a
fixed number of first pairs. *TSP+LRP* forecasts the probe by the battery for the start of the run, and
applies the line to this forecast. A metric of the application is predicted from the same metric of the probe.
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
class StudiedMethod:
    """A method of the study.

    Attributes:
        label: name of the method in the study.
        method: name of the method in ``forecasting/methods/``.
        published: error that the study reports for the total time, in percent.
    """

    label: str
    method: str
    published: float


METHODS = (
    StudiedMethod("TSP", "nws", 8.57),
    StudiedMethod("LRP full", "lrp", 8.42),
    StudiedMethod("LRP last 10", "lrp_last_10", 9.13),
    StudiedMethod("LRP fixed first x", "lrp_first", 9.96),
    StudiedMethod("TSP+LRP full", "tsp_lrp", 8.99),
    StudiedMethod("TSP+LRP last 10", "tsp_lrp_last_10", 9.14),
    StudiedMethod("TSP+LRP fixed first x", "tsp_lrp_first", 10.55),
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
    """The mean of *n* relative errors and their coefficient of variation; None if not computable."""

    n: int
    relative_error: float | None
    variation: float | None


def error_table(
    histories: Sequence[RunHistory], *, wanted: Sequence[str] = (), warm_up: int = WARM_UP
) -> dict[str, dict[str, StudyCell]]:
    """Return the cells by metric and method over all runs of applications in *histories*.

    Each application is paired with each probe of its group. The metrics are *wanted*. If *wanted* is empty,
    they are the metrics of the study that occur in *histories*, or all metrics if no metric of the study
    occurs. A run counts if all seven methods have a forecast and the run is not among the first *warm_up*
    runs of its series.
    """
    pairs = list(_pairs(histories))
    metrics_of_pairs = {target.source.metric for target, _ in pairs}
    shown = wanted or [name for name in METRICS if name in metrics_of_pairs] or sorted(metrics_of_pairs)
    return {
        metric: _cells([pair for pair in pairs if pair[0].source.metric == metric], warm_up)
        for metric in shown
    }


def _pairs(histories: Sequence[RunHistory]) -> Iterator[tuple[RunHistory, RunHistory]]:
    """Yield (application, probe) for the same metric of each application and each probe of its group."""
    for target in histories:
        for probe in histories:
            alike = (probe.group, probe.source.metric) == (target.group, target.source.metric)
            if alike and (target.kind, probe.kind) == ("application", "probe"):
                yield target, probe


def _cells(pairs: Iterable[tuple[RunHistory, RunHistory]], warm_up: int) -> dict[str, StudyCell]:
    actuals: list[NDArray[np.float64]] = []
    forecasts: dict[str, list[NDArray[np.float64]]] = {studied.method: [] for studied in METHODS}
    for target, probe in pairs:
        actual, medians = _forecasts(target, probe, warm_up)
        actuals.append(actual)
        for method, median in medians.items():
            forecasts[method].append(median)
    actual = np.concatenate([np.empty(0), *actuals])
    return {
        method: _cell(actual, np.concatenate([np.empty(0), *parts])) for method, parts in forecasts.items()
    }


def _forecasts(
    target: RunHistory, probe: RunHistory, warm_up: int
) -> tuple[NDArray[np.float64], Mapping[str, NDArray[np.float64]]]:
    of_probe = [(probe.source, observation) for observation in probe.observations]
    by_method = {
        studied.method: rolling_origin(studied.method, target.observations, of_probe) for studied in METHODS
    }
    actual = next(iter(by_method.values())).actual
    is_counted = np.arange(len(actual)) >= warm_up
    for forecasts in by_method.values():
        is_counted &= np.isfinite(forecasts.median)
    medians = {method: forecasts.median[is_counted] for method, forecasts in by_method.items()}
    return actual[is_counted], medians


def _cell(actual: NDArray[np.float64], forecasts: NDArray[np.float64]) -> StudyCell:
    return StudyCell(
        len(actual),
        metrics.relative_error(actual, forecasts),
        metrics.relative_error_variation(actual, forecasts),
    )
