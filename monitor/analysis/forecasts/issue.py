"""Issue the forecast that answers a question: the current forecast of a metric, or one computed now."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from django.db.models import Q

from forecasting import methods
from forecasting.base import OutdatedState, Source
from forecasting.series import OWN_SERIES, Forecaster, Observation
from monitor.analysis.forecasts import states
from monitor.analysis.forecasts.answer import compute, store
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.metric_state import STAGE
from monitor.analysis.forecasts.not_ready import NotReady
from monitor.analysis.forecasts.refresh import refresh_requested
from monitor.depot.samples.read import history
from monitor.models import Forecast, ForecastPredictor, ForecastState, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from monitor.depot.samples.read import Point

MOST_VALUES = 300  # that a method without a stored state uses, while a client waits
MOST_PREDICTOR_VALUES = 1_000  # of each predictor
MOST_PREDICTORS = 32


def issue(
    metric: Metric,
    now: datetime,
    *,
    method: str = METHOD,
    at: datetime | None = None,
    until: float = math.inf,
) -> Forecast:
    """Return the forecast of the next value of *metric*, or of a run that starts in the minute of *at*.

    The forecast uses the values that the forecaster of *metric* has used until now. The same question
    therefore gets the same answer until there are new values, and the answer is stored once. If *metric* has
    no state, a state is created, so that the forecast of the next run is kept up to date from now on.

    Raises:
        NotReady: the values cannot be used before the monotonic time *until*; ``refresh`` goes on with them.
        forecasting.base.Abstained: too few values.
        forecasting.base.UnknownMethod: no such method.
    """
    state = _state(metric)
    if state is None or state.forecast is None:
        if not refresh_requested(metric, now, until):
            raise NotReady(f"the forecast of {metric.name} of {metric.series.name} is being computed")
        state = _state(metric) or ForecastState(metric=metric)
    if method == METHOD and at is None and state.forecast is not None:
        return state.forecast
    last_time, last_value = state.last_time, state.last_value
    if last_time is None and (newest := history(metric, known_by=now, newest=1)):  # the state was reset
        last_time, last_value = newest[0].time, newest[0].value
    forecast = compute(
        _forecaster(metric, state, method, now),
        metric.unit,
        state.used_until or now,
        method=method,
        at=at and at.replace(second=0, microsecond=0),
        metric_id=metric.pk,
        issued_at=now,
        last_time=last_time or now,
        last_value=last_value,
    )
    return Forecast.objects.get(pk=store(forecast))


def as_observation(point: Point) -> Observation:
    return Observation(point.time.timestamp(), point.known_at.timestamp(), point.value)


def _state(metric: Metric) -> ForecastState | None:
    return ForecastState.objects.filter(metric=metric).select_related("forecast").first()


def _forecaster(metric: Metric, state: ForecastState, method: str, now: datetime) -> Forecaster:
    """Return a forecaster of *metric* that contains *method*.

    This is the stored forecaster if *method* is part of it, otherwise a new forecaster that has read the
    newest values.
    """
    if state.state is not None:
        try:
            forecaster = states.load(Forecaster, state.state)
        except OutdatedState:
            forecaster = Forecaster(METHOD)
        if method in forecaster.method_names():
            return forecaster
    if method not in methods.names():
        raise methods.unknown(method, methods.names())
    forecaster = Forecaster(method)
    newest = history(metric, known_by=now, newest=MOST_VALUES)
    _observe(forecaster, newest, OWN_SERIES)
    if newest and forecaster.method.USES_PREDICTORS:
        for source, other in _predictors(metric, by_stage=forecaster.method.USES_STAGES):
            values = history(other, start=newest[0].time, known_by=now, newest=MOST_PREDICTOR_VALUES)
            _observe(forecaster, values, source)
    return forecaster


def _observe(forecaster: Forecaster, points: Iterable[Point], source: Source) -> None:
    for point in points:
        forecaster.observe(as_observation(point), source)


def _predictors(metric: Metric, *, by_stage: bool) -> Iterator[tuple[Source, Metric]]:
    """Yield the predictors of *metric*.

    With *by_stage*, yield the stages of the predictors' series and of the metric's own series instead.
    """
    probes = ForecastPredictor.objects.filter(metric=metric).values("series")
    wanted = Q(segment__series__in=probes, name=metric.name)
    if by_stage:
        wanted = Q(segment=metric.segment_id) | Q(segment__series__in=probes)
        wanted &= Q(name__startswith=STAGE) & ~Q(pk=metric.pk)
    others = Metric.objects.filter(wanted).select_related("segment__series").order_by("pk")
    for other in others[:MOST_PREDICTORS]:
        is_own = other.segment_id == metric.segment_id
        yield Source("" if is_own else other.segment.series.name, other.name), other
