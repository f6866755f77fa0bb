"""Compute the forecast of a metric by its forecaster."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from forecasting.learning.pairing import PairedMethod
from forecasting.methods import auto, stagewise
from forecasting.methods.auto import PredictorRecord
from forecasting.series import QUANTILE_LEVELS, Forecaster
from monitor.forecasts.defaults import LEVEL, METHOD
from monitor.models import Forecast

_LOWER, _UPPER = QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.9)  # the interval of LEVEL
LEAST_FRESHNESS = timedelta(days=1)
FRESH_GAPS = 10  # times the mean time between runs
MOST_CHARACTERS = 300  # of the name of a predictor in the depot


def compute(
    forecaster: Forecaster,
    unit: str,
    known_until: datetime,
    *,
    method: str = METHOD,
    at: datetime | None = None,
    **context: Any,
) -> Forecast:
    """Return the forecast of the next run, or of one that starts *at* that time; it is not stored yet.

    *forecaster* has used all that was known at *known_until*. *context* are further fields of the forecast.

    Raises:
        forecasting.base.Abstained: too few values.
        forecasting.base.UnknownMethod: *method* is not part of *forecaster*.
    """
    at_seconds = max(at or known_until, known_until).timestamp()
    floor = 0.0 if unit == "seconds" else None
    part = None if method == METHOD else method
    computed = forecaster.forecast(at_seconds, method=part, probabilities=QUANTILE_LEVELS, floor=floor)
    quantiles = [computed.quantiles[probability] for probability in QUANTILE_LEVELS]
    return Forecast(
        method=method,
        predictor=_predictor(forecaster, method, at_seconds),
        at=at,
        level=LEVEL,
        last_known_at=known_until,
        n=computed.n,
        mean=computed.mean,
        median=computed.median,
        lower=quantiles[_LOWER],
        upper=quantiles[_UPPER],
        quantiles=quantiles,
        others=forecaster.part_medians(at_seconds, floor=floor) or None if part is None else None,
        **context,
    )


def predictor_records(forecaster: Forecaster) -> list[PredictorRecord]:
    """Return how much each predictor helps, the most helpful first."""
    method = forecaster.method
    return method.predictors() if isinstance(method, auto.Method) else []


def stale_at(began_at: datetime, forecast: Forecast) -> datetime:
    """Return when *forecast*, from values since *began_at*, is too old to be served."""
    gap = (forecast.last_time - began_at) / max(forecast.n - 1, 1)
    return forecast.last_time + max(LEAST_FRESHNESS, FRESH_GAPS * gap)


def _predictor(forecaster: Forecaster, method: str, at_seconds: float) -> str:
    """Return what *method* uses for such a run beside the metric's own history.

    For the default method, this is the most helpful predictor, if its gain is significant; for others, the
    predictor that they have chosen, or the series whose stages they use.
    """
    if method == METHOD:
        best = next(iter(predictor_records(forecaster)), None)
        return "/".join(best.predictor)[:MOST_CHARACTERS] if best and best.helps else ""
    used = forecaster.method if method == forecaster.name else forecaster.method.parts()[method]
    if isinstance(used, PairedMethod):
        return "/".join(used.predictor(at_seconds) or ())[:MOST_CHARACTERS]
    if isinstance(used, stagewise.Method):
        stages = used.stages(at_seconds).values()
        return ", ".join(sorted({stage.predictor.series for stage in stages if stage.predictor}))[
            :MOST_CHARACTERS
        ]
    return ""
