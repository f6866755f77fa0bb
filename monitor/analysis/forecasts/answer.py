"""Compute the forecast of a metric by its forecaster, and store it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from forecasting.learning.pairing import PairedMethod
from forecasting.methods import auto, stagewise
from forecasting.methods.auto import PredictorRecord
from forecasting.series import QUANTILE_LEVELS, Forecaster
from monitor.analysis.forecasts.defaults import LEVEL, METHOD
from monitor.core.db import binary
from monitor.models import Forecast

_LOWER, _UPPER = QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.9)  # the interval of LEVEL
LEAST_FRESHNESS = timedelta(days=1)
FRESH_GAPS = 10  # times the mean time between runs
MOST_CHARACTERS = 300  # of the name of a predictor in the depot

_INSERT = """
INSERT INTO monitor_forecast (metric_id, issued_at, method, predictor, at, level, last_time, last_known_at,
    last_value, n, mean, median, lower, upper, quantiles, others, basis)
SELECT %(metric)b, %(issued_at)b, %(method)b, %(predictor)b, %(at)b, %(level)b, %(last_time)b,
    %(last_known_at)b, %(last_value)b, %(n)b, %(mean)b, %(median)b, %(lower)b, %(upper)b,
    %(quantiles)b::float8[], %(others)b::text::jsonb, %(basis)b::text::jsonb
"""
# The same forecast from the same values is stored once.
ISSUED = f"""
same AS (
    SELECT id FROM monitor_forecast
    WHERE metric_id = %(metric)b AND method = %(method)b AND last_known_at = %(last_known_at)b
        AND at IS NOT DISTINCT FROM %(at)b::timestamptz AND n = %(n)b AND quantiles = %(quantiles)b::float8[]
    ORDER BY id LIMIT 1
), issued AS ({_INSERT} WHERE NOT EXISTS (SELECT FROM same) RETURNING id),
one AS (SELECT id FROM same UNION ALL SELECT id FROM issued)
"""  # noqa: S608  # constants of this module


def compute(
    forecaster: Forecaster,
    unit: str,
    known_until: datetime,
    *,
    method: str = METHOD,
    at: datetime | None = None,
    **context: Any,
) -> Forecast:
    """Compute the forecast of the next run, or of a run that starts at *at*; do not store it.

    *forecaster* has used the inputs known at *known_until*. *unit* is the unit of the metric; *context* sets
    further fields of the forecast.

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


def store(forecast: Forecast) -> int:
    """Store *forecast* unless an equal forecast is stored; return the key of the stored forecast."""
    (key,) = binary.row(f"WITH {ISSUED} SELECT id FROM one", parameters(forecast))  # noqa: S608
    return int(key)


def parameters(forecast: Forecast) -> dict[str, Any]:
    """Return the parameters with which ``ISSUED`` stores *forecast*."""
    documents = {"others": forecast.others, "basis": forecast.basis}
    texts = {name: json.dumps(document) if document else None for name, document in documents.items()}
    return {**vars(forecast), "metric": forecast.metric_id, **texts}


def predictor_records(forecaster: Forecaster) -> list[PredictorRecord]:
    """Return a record of each predictor of *forecaster*, with its gain; the most helpful one is first."""
    method = forecaster.method
    return method.predictors() if isinstance(method, auto.Method) else []


def stale_at(began_at: datetime, forecast: Forecast) -> datetime:
    """Return when *forecast* becomes too old to be served.

    The first of the values behind *forecast* is from *began_at*: the longer the mean time between the values,
    the longer the forecast is served.
    """
    gap = (forecast.last_time - began_at) / max(forecast.n - 1, 1)
    return forecast.last_time + max(LEAST_FRESHNESS, FRESH_GAPS * gap)


def _predictor(forecaster: Forecaster, method: str, at_seconds: float) -> str:
    """Return the predictor that *method* uses for a run at *at_seconds*; empty if *method* uses no predictor.

    The default method uses its most helpful predictor, if the gain of this predictor is significant. Another
    method uses the predictor that it has chosen, or the series that predict its stages.
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
