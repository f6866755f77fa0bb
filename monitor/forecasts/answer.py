"""What a forecaster that follows a metric is asked, and its answer as the depot keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from forecasting.base import Abstained
from forecasting.learning.pairing import PairedMethod
from forecasting.methods import auto, stagewise
from forecasting.methods.auto import PredictorRecord
from forecasting.series import QUANTILE_LEVELS
from monitor.forecasts.defaults import LEVEL, METHOD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecasting.series import Forecaster

_LOWER, _UPPER = QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.9)
LEAST_PATIENCE = timedelta(days=1)
MOST_CHARACTERS = 300  # as the depot keeps the name of a predictor
PATIENCE_GAPS = 10  # times as long as one run mostly comes after the other


@dataclass(frozen=True)
class Made:
    """An answer about the next run, or about one *at* some time. *quantiles* are of ``QUANTILE_LEVELS``,
    *others* the medians of the methods that it is made of."""

    method: str
    at: datetime | None
    n: int
    mean: float
    median: float
    quantiles: list[float]
    predictor: str = ""
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def lower(self) -> float:
        return self.quantiles[_LOWER]

    @property
    def upper(self) -> float:
        return self.quantiles[_UPPER]


def made(
    forecaster: Forecaster, unit: str, known: datetime, *, method: str = METHOD, at: datetime | None = None
) -> Made:
    """What *forecaster*, which has used what was *known* then, says by *method* of the next run, or of one
    that starts *at* some time.

    Raises:
        forecasting.base.Abstained: too few values.
        forecasting.base.UnknownMethod: *method* is no part of it.
    """
    asked = max(at or known, known)
    floor = 0.0 if unit == "seconds" else None
    said = forecaster.forecast(
        asked.timestamp(),
        method=None if method == METHOD else method,
        probabilities=QUANTILE_LEVELS,
        floor=floor,
    )
    quantiles = [said.quantiles[probability] for probability in QUANTILE_LEVELS]
    if method != METHOD:
        used = _used(forecaster, method, asked.timestamp())
        return Made(method, at, said.n, said.mean, said.median, quantiles, used)
    others = forecaster.part_medians(asked.timestamp(), floor=floor)
    return Made(method, at, said.n, said.mean, said.median, quantiles, _helping(forecaster), others)


def prospects(forecaster: Forecaster) -> list[PredictorRecord]:
    """What it listens to, the most helpful first, and how well that helps."""
    method = forecaster.method
    return method.predictors() if isinstance(method, auto.Method) else []


def _helping(forecaster: Forecaster) -> str:
    """The most helpful predictor, if that is hardly chance."""
    best = next(iter(prospects(forecaster)), None)
    return "/".join(best.predictor)[:MOST_CHARACTERS] if best and best.helps else ""


def _used(forecaster: Forecaster, name: str, at_seconds: float) -> str:
    """What the method of that *name* forecasts such a run from: the predictor that it has chosen, or the
    series whose stages it uses; nothing where its own history is all."""
    whole = forecaster.method
    method = whole if name == forecaster.name else whole.parts()[name]
    if isinstance(method, PairedMethod):
        return "/".join(method.predictor(at_seconds) or ())[:MOST_CHARACTERS]
    if isinstance(method, stagewise.Method):
        stages = method.stages(at_seconds).values()
        return ", ".join(sorted({one.predictor.series for one in stages if one.predictor}))[:MOST_CHARACTERS]
    return ""


def made_if_any(forecaster: Forecaster, unit: str, known: datetime) -> Made | None:
    """What it says of the next run; None if it abstains."""
    try:
        return made(forecaster, unit, known)
    except Abstained:
        return None


@dataclass(frozen=True)
class Knowledge:
    """What an answer is made from: the newest value of the metric, and the latest news of anything."""

    metric: int
    last_time: datetime
    last_value: float | None
    last_known_at: datetime


def kept(made: Made, knowledge: Knowledge, now: datetime) -> dict[str, Any]:
    """An answer that is issued *now*, as ``monitor.forecasts.forecasts_sql`` keeps it."""
    return {
        "metric": knowledge.metric,
        "issued_at": now,
        "method": made.method,
        "predictor": made.predictor,
        "at": made.at,
        "level": LEVEL,
        "last_time": knowledge.last_time,
        "last_known_at": knowledge.last_known_at,
        "last_value": knowledge.last_value,
        "n": made.n,
        "mean": made.mean,
        "median": made.median,
        "lower": made.lower,
        "upper": made.upper,
        "quantiles": made.quantiles,
        "others": json.dumps(made.others) if made.others else None,
    }


def stale_at(began_at: datetime, last_time: datetime, n: int) -> datetime:
    """From when on an answer from *n* values since *began_at*, the newest at *last_time*, is too old."""
    gap = (last_time - began_at) / max(n - 1, 1)
    return last_time + max(LEAST_PATIENCE, PATIENCE_GAPS * gap)
