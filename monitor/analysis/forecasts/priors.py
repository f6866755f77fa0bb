"""The prior of a new metric: what the forecasters of metrics like it have learned.

The prior is chosen when the first values are learned, and stays: a state that is rebuilt begins with the
same prior, so it becomes the same to the byte.
"""

from __future__ import annotations

from typing import NamedTuple

from forecasting import state
from forecasting.base import OutdatedState
from forecasting.prior import MIN_VALUES, Prior
from forecasting.series import Forecaster
from monitor.analysis.forecasts import states
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.statements import fetch
from monitor.models import ForecastState, Metric

MOST_TEACHERS = 4
_NONE = b""

# Earlier segments of the same series first, then the series of the same probe with the most values.
_TEACHERS = """
SELECT state.state FROM monitor_forecaststate AS state
JOIN monitor_metric AS metric ON metric.id = state.metric_id
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
WHERE metric.name = %(name)b AND segment.probe = %(probe)b AND metric.id <> %(metric)b
    AND state.n > %(least)b AND state.state IS NOT NULL AND NOT state.is_behind
ORDER BY segment.series_id = %(series)b DESC, state.n DESC, metric.id LIMIT %(most)b
"""


class Teacher(NamedTuple):
    """The packed forecaster of a metric."""

    state: bytes


def new_forecaster(metric: Metric) -> Forecaster:
    """Return a forecaster of *metric* that begins with its prior; choose the prior if that is still to do.

    The caller has locked the row of the state.
    """
    rows = ForecastState.objects.filter(metric=metric)
    kept = rows.values_list("prior", flat=True).get()
    if kept is None:
        prior = Prior.pooled(filter(None, map(_taught, _teachers(metric))))
        rows.update(prior=state.dump(prior) if prior else _NONE)
    else:
        prior = _loaded(bytes(kept))
    return Forecaster.started(METHOD, prior)


def _teachers(metric: Metric) -> list[Teacher]:
    parameters = {
        "name": metric.name,
        "probe": metric.segment.probe,
        "metric": metric.pk,
        "series": metric.segment.series_id,
        "least": MIN_VALUES,
        "most": MOST_TEACHERS,
    }
    return fetch(Teacher, _TEACHERS, parameters)


def _taught(teacher: Teacher) -> Prior | None:
    try:
        return states.load(Forecaster, teacher.state).prior()
    except OutdatedState:  # it is about to be reset
        return None


def _loaded(kept: bytes) -> Prior | None:
    try:
        return state.load(Prior, kept) if kept else None
    except OutdatedState:  # another version chose it
        return None
