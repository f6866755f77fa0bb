"""What the next value of a metric will be: issued, kept, and scored when the truth arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone

from forecasting import methods
from forecasting.base import OutdatedState, Source
from forecasting.series import OWN_SERIES, Forecaster, Observation
from monitor.depot.samples.read import history
from monitor.forecasts import forecasts_sql
from monitor.forecasts.answer import Knowledge, kept, made
from monitor.forecasts.defaults import METHOD
from monitor.forecasts.refresh import bring_up_metrics
from monitor.forecasts.score import score_all
from monitor.forecasts.state_update import loaded
from monitor.models import Forecast, ForecastPredictor, ForecastState, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from monitor.depot.samples.read import Point

NEWEST = 300  # values that a method is told which does not follow the metric: it is done while somebody waits
NEWEST_OF_OTHERS = 1_000  # values of each that it listens to
STAGE = "stage."


def issue(metric: Metric, now: datetime, *, method: str = METHOD, at: datetime | None = None) -> Forecast:
    """Forecast the next value of *metric*, which is of one segment, or that of a run which starts in the
    minute of *at*.

    It is from what its forecaster has used until now, and from the same knowledge comes the same answer: it
    is issued, and kept, once. A metric that nobody follows is followed from then on.

    Raises:
        forecasting.base.Abstained: too few values.
        forecasting.base.UnknownMethod: no such method.
    """
    state = _state(metric)
    if state is None or state.forecast is None:
        bring_up_metrics([metric.pk], now)
        state = _state(metric) or ForecastState(metric=metric)
    if method == METHOD and at is None and state.forecast is not None:
        return state.forecast
    if at is not None:
        at = at.replace(second=0, microsecond=0)
    known = state.used_until or now
    answer = made(_forecaster(metric, state, method, now), metric.unit, known, method=method, at=at)
    return Forecast.objects.get(pk=forecasts_sql.issue(kept(answer, _knowledge(metric, state, now), now)))


def score(now: datetime | None = None) -> int:
    """Give every forecast whose truth has arrived its truth; how many.

    The truth of a forecast is the first value of a later slot that became known after it was issued.
    """
    return score_all(now or timezone.now())


def _knowledge(metric: Metric, state: ForecastState, now: datetime) -> Knowledge:
    """What an answer is made from. While a state begins anew it does not say what was told."""
    last_time, last_value = state.last_time, state.last_value
    if last_time is None and (newest := history(metric, known_by=now, newest=1)):
        last_time, last_value = newest[0].time, newest[0].value
    return Knowledge(metric.pk, last_time or now, last_value, state.used_until or now)


def _state(metric: Metric) -> ForecastState | None:
    return ForecastState.objects.filter(metric=metric).select_related("forecast").first()


def _forecaster(metric: Metric, state: ForecastState, method: str, now: datetime) -> Forecaster:
    """The one that follows *metric*, if *method* is part of it; else one that is told its newest values."""
    if state.state is not None:
        try:
            forecaster = loaded(bytes(state.state))
        except OutdatedState:
            forecaster = Forecaster(METHOD)
        if method in forecaster.method_names():
            return forecaster
    if method not in methods.names():
        raise methods.unknown(method, methods.names())
    return _told(Forecaster(method), metric, now)


def _told(forecaster: Forecaster, metric: Metric, now: datetime) -> Forecaster:
    """A *forecaster* that nobody kept, told the newest values of *metric*, and those of what it may listen to
    since."""
    newest = history(metric, known_by=now, newest=NEWEST)
    _observe(forecaster, newest, OWN_SERIES)
    if newest and forecaster.method.USES_PREDICTORS:
        for source, other in _sources(metric, by_stage=forecaster.method.USES_STAGES):
            heard = history(other, start=newest[0].time, known_by=now, newest=NEWEST_OF_OTHERS)
            _observe(forecaster, heard, source)
    return forecaster


def _observe(forecaster: Forecaster, points: Iterable[Point], source: Source) -> None:
    for point in points:
        forecaster.observe(as_observation(point), source)


def as_observation(point: Point) -> Observation:
    return Observation(point.time.timestamp(), point.known_at.timestamp(), point.value)


def _sources(metric: Metric, *, by_stage: bool) -> Iterator[tuple[Source, Metric]]:
    """What a method may listen to: the predictors of *metric*, or their stages and the stages beside it."""
    probes = ForecastPredictor.objects.filter(metric=metric).values("series")
    wanted = Q(segment__series__in=probes, name=metric.name)
    if by_stage:
        wanted = Q(segment=metric.segment_id) | Q(segment__series__in=probes)
        wanted &= Q(name__startswith=STAGE) & ~Q(pk=metric.pk)
    for other in Metric.objects.filter(wanted).select_related("segment__series"):
        is_own = other.segment_id == metric.segment_id
        yield Source("" if is_own else other.segment.series.name, other.name), other
