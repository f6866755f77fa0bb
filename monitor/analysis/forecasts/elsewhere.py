"""Forecast runs where an application never ran, from its runs elsewhere and from replays of its calls.

The forecast of a total is the predicted time of input and output, the remaining time of the runs on the
reference, and the wait in the target's queue. Quantiles add up, so the interval is rather too wide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecasting.base import LARGEST_VALUE
from forecasting.elsewhere.abstained import NoPrediction
from forecasting.elsewhere.prediction import IoPrediction, predict
from forecasting.elsewhere.runs import SystemRuns
from forecasting.queues.binomial import QUANTILE, WaitHistory
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.basis import ForecastBasis
from monitor.analysis.forecasts.defaults import ELSEWHERE, LEVEL
from monitor.analysis.forecasts.elsewhere_runs import (
    Replay,
    SegmentRuns,
    TracedApplication,
    comparable,
    newest_runs,
    queue_waits,
    replays,
    segment_parameters,
    system_runs,
    traced,
)
from monitor.analysis.forecasts.elsewhere_sql import MeasuredSeries
from monitor.depot.series.segments import next_identities
from monitor.models import Forecast, Series, Suite
from monitor.models.segment import SegmentIdentity

_LEVELS = np.array(QUANTILE_LEVELS)
_LOWER, _MIDDLE, _UPPER = (QUANTILE_LEVELS.index(level) for level in (0.1, 0.5, 0.9))


@dataclass(frozen=True)
class ElsewhereForecast:
    """A forecast that is not stored yet, and the series of the replay on the target."""

    forecast: Forecast
    identity: SegmentIdentity
    replay_series: int


@dataclass(frozen=True)
class _System:
    """A system on which the application and its replay ran."""

    application: MeasuredSeries
    replay: MeasuredSeries
    runs: SystemRuns
    own: SegmentRuns


@dataclass(frozen=True)
class _Target:
    """The next run of a *series* with *identity*; *resources* and *viewers* are those of the series."""

    series: int
    identity: SegmentIdentity
    resources: frozenset[str]
    viewers: Collection[int]


@dataclass
class _Known:
    """All replays and traced applications that have runs; *parameters* and *runs* are by segment."""

    replays: Sequence[Replay]
    applications: Sequence[MeasuredSeries]
    parameters: Mapping[int, Mapping[str, Any]]
    runs: Mapping[int, SegmentRuns]
    _systems: dict[tuple[str, str, str, frozenset[int]], list[_System]] = field(default_factory=dict)

    def replays_for(self, target: _Target) -> list[Replay]:
        """Return the replays of the calls that *target* makes, on any system."""
        asked = (target.identity.probe, comparable(target.identity.parameters))
        return [
            each
            for each in self.replays
            if (each.application.probe, each.application.parameters) == asked
            and each.measured.may_be_named_to(target.viewers)
        ]

    def systems(self, target: _Target, replay: Replay) -> list[_System]:
        """Return the systems on which the application and *replay* ran, those with the most pairs first."""
        version = target.identity.probe_version
        key = (replay.application.digest, replay.application.manner, version, frozenset(target.viewers))
        if key not in self._systems:
            systems = self._of(replay.application, version, target.viewers)
            self._systems[key] = sorted(
                systems, key=lambda each: (-len(each.runs.pairs), each.application.name)
            )
        return [each for each in self._systems[key] if each.application.series != target.series]

    def _of(
        self, application: TracedApplication, version: str, viewers: Collection[int]
    ) -> Iterator[_System]:
        same = [
            each.measured
            for each in self.replays
            if each.application == application and each.measured.may_be_named_to(viewers)
        ]
        for traced_series in self.applications:
            here = [each for each in same if each.resource_names <= traced_series.resource_names]
            if (
                here
                and (traced_series.probe, traced_series.probe_version) == (application.probe, version)
                and comparable(self.parameters[traced_series.segment]) == application.parameters
                and traced_series.may_be_named_to(viewers)
            ):
                replay = max(
                    here, key=lambda each: (len(each.resource_names), self.runs[each.segment].newest)
                )
                own = self.runs[traced_series.segment]
                both = system_runs(traced_series.resources, own, self.runs[replay.segment])
                yield _System(traced_series, replay, both, own)


def forecast_elsewhere(series: Collection[int], now: datetime) -> dict[int, ElsewhereForecast | NoPrediction]:
    """Return the forecast of the next run of each of *series* (keys), or why there is none.

    Series whose application has no replay are left out. Replays and runs count only if all users who see a
    series see them, too.
    """
    found = replays()
    names = {replay.application.probe for replay in found}
    targets = _targets(Series.objects.filter(pk__in=series, probe__in=names)) if names else []
    if not targets:
        return {}
    applications = traced(names)
    runs = newest_runs(
        {*(replay.measured.segment for replay in found), *(each.segment for each in applications)}, now
    )
    known = _Known(
        [each for each in found if each.measured.segment in runs],
        [each for each in applications if each.segment in runs],
        segment_parameters(each.segment for each in applications),
        runs,
    )
    return {
        target.series: _forecast_by_newest(target, known, own, now)
        for target in targets
        if (own := known.replays_for(target))
    }


def _targets(series: Iterable[Series]) -> list[_Target]:
    rows = {each.pk: each for each in series}
    identities = next_identities(Series.objects.filter(pk__in=rows))
    groups = Suite.viewers.through.objects.filter(suite__series__in=rows).order_by()
    viewers: dict[int, set[int]] = defaultdict(set)
    for key, group in groups.values_list("suite__series", "group"):
        viewers[key].add(group)
    return [
        _Target(
            key,
            identity,
            frozenset(name for names in identity.bindings.values() for name in names),
            viewers[key],
        )
        for key, identity in identities.items()
    ]


def _forecast_by_newest(
    target: _Target, known: _Known, same: Sequence[Replay], now: datetime
) -> ElsewhereForecast | NoPrediction:
    """Return the forecast by the signature whose replay on the target is newest; of several that fail, the
    reason of the first. *same* are the replays of the calls on any system."""
    here = [each for each in same if each.measured.resource_names <= target.resources]
    here.sort(key=lambda each: known.runs[each.measured.segment].newest, reverse=True)
    if not here:
        name = ", ".join(sorted(target.resources))
        return NoPrediction("no_replay", f"no replay of {target.identity.probe} has passed at {name}")
    problems = []
    for replay in here:
        try:
            return _forecast(
                target, replay, known.systems(target, replay), known.runs[replay.measured.segment], now
            )
        except NoPrediction as error:
            problems.append(error)
    return problems[0]


def _forecast(
    target: _Target, replay: Replay, systems: Sequence[_System], here: SegmentRuns, now: datetime
) -> ElsewhereForecast:
    """Raises NoPrediction."""
    if not systems:
        raise NoPrediction(
            "no_replay",
            f"{target.identity.probe} and a replay of it have passed nowhere on the same resources",
        )
    reference, *others = systems
    replayed = system_runs(", ".join(sorted(target.resources)), None, here)
    prediction = predict(reference.runs, replayed, [each.runs for each in others], at_seconds=now.timestamp())
    computing = _computing(reference.own)
    queue = _queue(replay.measured.segment, now)
    io = np.array([prediction.quantile(level) for level in QUANTILE_LEVELS])
    quantiles = (io + np.quantile(computing, _LEVELS) + queue).clip(0.0, LARGEST_VALUE)
    used = [here, *(each.own for each in systems)]
    forecast = Forecast(
        issued_at=now,
        method=ELSEWHERE,
        predictor=replay.measured.name,
        level=LEVEL,
        last_time=here.newest,
        last_known_at=max(each.known_at for each in used),
        n=0,
        mean=float(np.trapezoid(quantiles, _LEVELS) / (_LEVELS[-1] - _LEVELS[0])),
        median=float(quantiles[_MIDDLE]),
        lower=float(quantiles[_LOWER]),
        upper=float(quantiles[_UPPER]),
        quantiles=quantiles.tolist(),
        basis=_basis(reference, replay, prediction, here, computing, queue).document(),
    )
    return ElsewhereForecast(forecast, target.identity, replay.measured.series)


def _computing(runs: SegmentRuns) -> NDArray[np.float64]:
    """Return what each run took beside input, output and the wait in the queue, in seconds."""
    seconds = [
        max(total.total_seconds - total.queue_seconds - run.seconds, 0.0)
        for run in runs.io
        if (total := runs.totals.get(run.started_at_seconds))
    ]
    return np.array(seconds or [0.0])


def _queue(segment: int, now: datetime) -> NDArray[np.float64]:
    """Return the quantiles of the wait in the queue of the replay's *segment*, by ``QUANTILE_LEVELS``.

    From the level of the bound on they are at least the bound, where there are enough waits for one.
    """
    waits = queue_waits(segment, now)
    if not waits:
        return np.zeros(len(QUANTILE_LEVELS))
    quantiles: NDArray[np.float64] = np.quantile([seconds for _, seconds in waits], _LEVELS)
    history = WaitHistory()  # a request may need a hundred of these: the regressions would take seconds
    for started, seconds in waits:
        history.add(started, seconds, history.bound(started))
    bound = history.bound(now.timestamp())
    if bound is not None:
        quantiles[_LEVELS >= QUANTILE] = np.maximum(quantiles[_LEVELS >= QUANTILE], bound)
    return quantiles


def _basis(
    reference: _System,
    replay: Replay,
    prediction: IoPrediction,
    here: SegmentRuns,
    computing: NDArray[np.float64],
    queue: NDArray[np.float64],
) -> ForecastBasis:
    return ForecastBasis(
        signature=replay.application.digest,
        reference=reference.application.name,
        reference_replay=reference.replay.name,
        reference_runs=prediction.pairs,
        reference_at=reference.own.newest,
        replay=replay.measured.name,
        replay_runs=prediction.replays,
        replay_at=here.newest,
        io_seconds=prediction.seconds,
        classes=prediction.classes,
        compute_seconds=float(np.median(computing)),
        compute_from="reference",
        queue_seconds=float(queue[_MIDDLE]),
        queue_bound_seconds=float(queue[QUANTILE_LEVELS.index(QUANTILE)]),
    )
