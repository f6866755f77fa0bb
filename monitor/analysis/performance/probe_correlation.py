"""Correlate the stages of an application with the stages of a probe that ran shortly before, or meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from monitor.analysis.performance.passed_runs import PassedRuns
from monitor.depot.samples.correlation import correlation
from monitor.depot.samples.pairing import nearest_known

HALF_HOUR = 1_800_000_000  # microseconds


class Lag(StrEnum):
    """How long before a run of the application its run of the probe ended.

    SIMULTANEOUS: both ran at the same time at least for a moment; of two such probe runs, the one that
    started nearest to the start of the application. RIGHT_AFTER: the application started less than 30
    minutes after the probe ended. HALF_HOUR: it started 30 minutes or more, but less than 60, after the probe
    ended. The last two use the newest probe run of the interval.
    """

    SIMULTANEOUS = "simultaneous"
    RIGHT_AFTER = "right after"
    HALF_HOUR = "30 minutes"


@dataclass(frozen=True)
class StageCorrelation:
    """Pearson's *r* of two metrics over *n* pairs of runs, and its two-sided p-value.

    Both are None for fewer than four pairs, and if a metric is constant.
    """

    application: str
    probe: str
    n: int
    r: float | None
    p: float | None


def correlations(
    application: PassedRuns,
    probe: PassedRuns,
    lag: Lag,
    names: tuple[Sequence[str], Sequence[str]],
    scale: float = 1.0,
) -> list[StageCorrelation]:
    """Correlate each metric of ``names[0]``, of the application, with each of ``names[1]``, of the probe.

    *scale* is the number of seconds of the grid, in which lags are measured, per second.
    """
    partner = partners(application, probe, lag, scale)
    has_partner = partner >= 0
    cells = []
    for of_application in names[0]:
        for of_probe in names[1]:
            first = application.durations[of_application][has_partner]
            second = probe.durations[of_probe][partner[has_partner]]
            is_measured = ~(np.isnan(first) | np.isnan(second))
            pearson = (found := correlation(first[is_measured], second[is_measured])).pearson
            r, p = (pearson.value, pearson.p) if pearson else (None, None)
            cells.append(StageCorrelation(of_application, of_probe, found.n, r, p))
    return cells


def partners(application: PassedRuns, probe: PassedRuns, lag: Lag, scale: float = 1.0) -> NDArray[np.int64]:
    """Return for each run of *application* the index of the run of *probe* at *lag*; -1 without one."""
    if not len(probe):
        return np.full(len(application), -1)
    order = np.argsort(probe.started, kind="stable")
    started, ended = probe.started[order], probe.ended[order]
    if lag is Lag.SIMULTANEOUS:
        places = _overlapping(application, started, ended)
    else:
        half_hour = round(HALF_HOUR / scale)
        least = half_hour if lag is Lag.HALF_HOUR else 0
        places = nearest_known(started, ended, application.started - least)
        is_recent = application.started - ended[places] < least + half_hour
        places = np.where(is_recent, places, -1)
    return np.where(places >= 0, order[places], -1)


def _overlapping(
    application: PassedRuns, started: NDArray[np.int64], ended: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Runs of one series do not overlap, so the probe runs around the start of the application suffice."""
    after = np.searchsorted(started, application.started, side="right")
    chosen = np.full(len(application), -1)
    distances = np.full(len(application), np.iinfo(np.int64).max)
    for places in (after - 1, after):
        is_run = (places >= 0) & (places < len(started))
        place = np.where(is_run, places, 0)
        distance = np.abs(started[place] - application.started)
        overlaps = (started[place] < application.ended) & (ended[place] > application.started)
        is_nearer = is_run & (overlaps | (distance == 0)) & (distance < distances)
        chosen = np.where(is_nearer, place, chosen)
        distances = np.where(is_nearer, distance, distances)
    return chosen
