"""Describe the performance of a series in a time window, by stage and total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

import probes
from monitor.analysis.performance import passed_runs
from monitor.analysis.performance.change_points import change_points
from monitor.analysis.performance.describe import ColumnDescription, describe
from monitor.analysis.performance.matched_changes import ChangePoint, MatchedChange, matched
from monitor.analysis.performance.passed_runs import TOTALS, PassedRuns
from monitor.analysis.performance.probe_correlation import Lag, StageCorrelation, correlations
from monitor.analysis.performance.recorded_changes import recorded_changes
from monitor.analysis.performance.sigma_histogram import SigmaHistogram, sigma_histogram
from monitor.analysis.performance.variance_share import variance_shares
from monitor.core.db.timestamps import moment
from monitor.models import ForecastPredictor, Segment, Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SEARCHED = 10_000  # newest runs in which change points are searched


class NoPassedRuns(Exception):
    """No run of the series passed in the window; the message names both."""


@dataclass(frozen=True)
class ProbeCorrelation:
    """The correlations of the series with the *probe* at each lag; *probe_segment* is a number."""

    probe: str
    probe_segment: int
    by_lag: Mapping[Lag, Sequence[StageCorrelation]]


@dataclass(frozen=True)
class SeriesStatistics:
    """The durations of the passed runs of *series* with slots from *start* until before *end*, in seconds.

    Attributes:
        segment: number of the segment that ran last, which all figures but the change points cover.
        runs: passed runs of this segment; *other_runs* passed in other segments.
        stages, totals: figures by metric; stages in the order in which the probe runs them.
        complete_runs: runs that have all stages; *variance_shares* cover these.
        variance_shares: share of each stage in the variance of total (i); empty without variance.
        histograms: by total.
        change_points: by total, over all segments.
        correlations: with each probe.
    """

    series: str
    start: datetime
    end: datetime
    segment: int
    runs: int
    other_runs: int
    stages: Mapping[str, ColumnDescription]
    totals: Mapping[str, ColumnDescription]
    complete_runs: int
    variance_shares: Mapping[str, float]
    histograms: Mapping[str, SigmaHistogram]
    change_points: Mapping[str, Sequence[MatchedChange]]
    correlations: Sequence[ProbeCorrelation]


def series_statistics(
    series: Series,
    start: datetime,
    end: datetime,
    partners: Iterable[Series] | None = None,
    scale: float = 1.0,
) -> SeriesStatistics:
    """Describe *series*, and correlate it with *partners* (None: the predictors of its metrics).

    *scale* is the number of seconds of the grid, in which lags of correlations are measured, per second.

    Raises:
        NoPassedRuns: no run with a stage or a total passed in the window.
        TooManySamples: a metric has more samples than are read at once.
    """
    all_runs = passed_runs.read(series, start, end)
    if not len(all_runs):
        raise NoPassedRuns(f"no run of {series.name} with stages passed from {start} until {end}")
    runs = all_runs.of_newest_segment()
    segment = Segment.objects.get(pk=int(runs.segments[0]))
    stages = _ordered_stages(runs, segment)
    totals = [name for name in TOTALS if name in runs.durations]
    complete = _complete(runs, stages)
    return SeriesStatistics(
        series=series.name,
        start=start,
        end=end,
        segment=segment.number,
        runs=len(runs),
        other_runs=len(all_runs) - len(runs),
        stages={name: describe(runs.values(name)) for name in stages},
        totals={name: describe(runs.values(name)) for name in totals},
        complete_runs=len(complete),
        variance_shares=variance_shares({name: complete.durations[name] for name in stages if len(complete)}),
        histograms={name: sigma_histogram(runs.values(name)) for name in totals},
        change_points={name: _change_points(series, all_runs, name) for name in totals},
        correlations=_correlations(
            runs,
            [*stages, *totals],
            _predictors(segment) if partners is None else partners,
            start,
            end,
            scale,
        ),
    )


def _ordered_stages(runs: PassedRuns, segment: Segment) -> list[str]:
    """Return the stages in the order of the probe; stages that it does not have follow by name."""
    measured = sorted(name for name in runs.durations if name not in TOTALS)
    if segment.probe not in probes.names():
        return measured
    places = {
        f"stage.{stage.name}.seconds": place for place, stage in enumerate(probes.load(segment.probe).stages)
    }
    return sorted(measured, key=lambda name: places.get(name, len(places)))


def _complete(runs: PassedRuns, stages: Sequence[str]) -> PassedRuns:
    has_all: NDArray[np.bool_] = np.full(len(runs), bool(stages))
    for name in stages:
        has_all &= ~np.isnan(runs.durations[name])
    return runs.where(has_all)


def _change_points(series: Series, runs: PassedRuns, total: str) -> list[MatchedChange]:
    measured = runs.where(
        ~np.isnan(runs.durations[total]) & (np.arange(len(runs)) >= len(runs) - MOST_SEARCHED)
    )
    if len(measured) < 2:
        return []
    points = [
        ChangePoint(
            moment(measured.slots[found.index - 1]),
            moment(measured.slots[found.index]),
            found.before,
            found.after,
        )
        for found in change_points(measured.durations[total])
    ]
    # Where a level begins is known to within a few runs.
    tolerance = timedelta(microseconds=2 * float(np.median(np.diff(measured.slots))))
    return matched(points, recorded_changes(series, measured, points, tolerance), tolerance)


def _predictors(segment: Segment) -> list[Series]:
    predictors = ForecastPredictor.objects.filter(metric__segment=segment).order_by().values("series")
    return list(Series.objects.filter(pk__in=predictors).order_by("sort_name"))


def _correlations(
    runs: PassedRuns,
    names: Sequence[str],
    partners: Iterable[Series],
    start: datetime,
    end: datetime,
    scale: float,
) -> list[ProbeCorrelation]:
    """Correlate with each of *partners* that has passed runs; those an hour before *start* count, too."""
    found = []
    for partner in partners:
        probe_runs = passed_runs.read(partner, start - timedelta(hours=1), end)
        if not len(probe_runs):
            continue
        newest = probe_runs.of_newest_segment()
        segment = Segment.objects.get(pk=int(newest.segments[0]))
        totals = [name for name in TOTALS if name in newest.durations]
        both = names, [*_ordered_stages(newest, segment), *totals]
        by_lag = {lag: correlations(runs, newest, lag, both, scale) for lag in Lag}
        found.append(ProbeCorrelation(partner.name, segment.number, by_lag))
    return found
