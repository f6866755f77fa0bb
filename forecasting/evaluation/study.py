"""Repeat the study of two grids: the errors of forecasts from own history, from a probe, and from both.

Seven methods forecast seven metrics of each run of an application at its start. *TSP* is the NWS battery on
the application's own history. *LRP* is a straight line through pairs of a probe's and the application's
value, applied to the newest value of the probe; the line is fitted to all pairs, to the last 10, or to a
fixed number of first pairs. *TSP+LRP* forecasts the probe by the battery for the start of the run, and
applies the line to this forecast. A metric of the application is predicted from the same metric of the probe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from forecasting.evaluation import metrics
from forecasting.evaluation.published_predictions import METRICS
from forecasting.evaluation.rolling_origin import rolling_origin
from forecasting.reading.histories import RunHistory

WARM_UP = 10  # runs of a series that are not scored: the length of the shortest training set


@dataclass(frozen=True)
class StudiedMethod:
    """A method of the study: its label there, and its name in ``forecasting/methods/``."""

    label: str
    method: str


METHODS = (
    StudiedMethod("TSP", "nws"),
    StudiedMethod("LRP full", "lrp"),
    StudiedMethod("LRP last 10", "lrp_last_10"),
    StudiedMethod("LRP fixed first x", "lrp_first"),
    StudiedMethod("TSP+LRP full", "tsp_lrp"),
    StudiedMethod("TSP+LRP last 10", "tsp_lrp_last_10"),
    StudiedMethod("TSP+LRP fixed first x", "tsp_lrp_first"),
)


@dataclass(frozen=True)
class StudyCell:
    """The mean of *n* relative errors and their coefficient of variation; None if not computable."""

    n: int
    relative_error: float | None
    variation: float | None


@dataclass(frozen=True)
class StudyColumn:
    """One metric of the applications, and how well each method forecast it.

    Attributes:
        mean, stdev: of the values of all runs of the applications; None if there are too few.
        cells: by the name of the method.
    """

    mean: float | None
    stdev: float | None
    cells: Mapping[str, StudyCell]

    @property
    def n(self) -> int:
        """Return the number of forecast runs."""
        return max(cell.n for cell in self.cells.values())


EMPTY_COLUMN = StudyColumn(None, None, {studied.method: StudyCell(0, None, None) for studied in METHODS})


def error_table(
    histories: Sequence[RunHistory], *, wanted: Sequence[str] = (), warm_up: int = WARM_UP
) -> dict[str, StudyColumn]:
    """Return the columns of the table by metric, over all runs of applications in *histories*.

    Each application is paired with each probe of its group. The metrics are *wanted*. If *wanted* is empty,
    they are the metrics of the study that occur in *histories*, or all metrics if no metric of the study
    occurs. A run counts if all seven methods have a forecast and the run is not among the first *warm_up*
    runs of its series.
    """
    pairs = list(_pairs(histories))
    metrics_of_pairs = {target.source.metric for target, _ in pairs}
    shown = wanted or [name for name in METRICS if name in metrics_of_pairs] or sorted(metrics_of_pairs)
    return {
        metric: _column([pair for pair in pairs if pair[0].source.metric == metric], warm_up)
        for metric in shown
    }


def _pairs(histories: Sequence[RunHistory]) -> Iterator[tuple[RunHistory, RunHistory]]:
    """Yield (application, probe) for the same metric of each application and each probe of its group."""
    for target in histories:
        for probe in histories:
            alike = (probe.group, probe.source.metric) == (target.group, target.source.metric)
            if alike and (target.kind, probe.kind) == ("application", "probe"):
                yield target, probe


def _column(pairs: Sequence[tuple[RunHistory, RunHistory]], warm_up: int) -> StudyColumn:
    actuals: list[NDArray[np.float64]] = []
    forecasts: dict[str, list[NDArray[np.float64]]] = {studied.method: [] for studied in METHODS}
    for target, probe in pairs:
        actual, medians = _forecasts(target, probe, warm_up)
        actuals.append(actual)
        for method, median in medians.items():
            forecasts[method].append(median)
    actual = np.concatenate([np.empty(0), *actuals])
    targets = {(target.group, target.source.series): target for target, _ in pairs}
    values = [seen.value for target in targets.values() for seen in target.observations]
    return StudyColumn(
        fmean(values) if values else None,
        stdev(values) if len(values) > 1 else None,
        {method: _cell(actual, np.concatenate([np.empty(0), *parts])) for method, parts in forecasts.items()},
    )


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
