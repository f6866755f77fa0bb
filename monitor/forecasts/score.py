"""Score forecasts when their actual values arrive, and write the record that goes with every answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecasting.evaluation.metrics import forecast_scores
from forecasting.uncertainty.intervals import QUANTILE_LEVELS, lower_tail
from monitor.forecasts import daily_scores, forecasts_sql
from monitor.forecasts.defaults import HEADLINE, LEVEL, METHOD
from monitor.forecasts.quantiles import quantile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from monitor.forecasts.forecasts_sql import ScoredColumns, ScoredForecast

RECORD_FORECASTS = 100  # that a record is computed from
KEPT = {HEADLINE: 2_000}  # forecasts of a metric: as many as charts show
KEPT_OF_OTHERS = 200
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class ForecastRecord:
    """The scores of the newest *record_n* forecasts of a metric by one method; as in ``ForecastState``.

    For each level of ``QUANTILE_LEVELS``, *less* counts the actual values that were less than that quantile,
    and *most* those that were not more.
    """

    record_n: int = 0
    mean_absolute_error: float | None = None
    relative_error: float | None = None
    mean_absolute_scaled_error: float | None = None
    winkler_score: float | None = None
    less: Sequence[int] = ()
    most: Sequence[int] = ()

    def coverage(self, level: float) -> float | None:
        """Return the share of actual values in the interval of *level*, ends included.

        Between the levels of stored quantiles it is interpolated.
        """
        if not self.record_n or not self.less:
            return None
        tail = lower_tail(level)
        return (quantile(self.most, 1.0 - tail) - quantile(self.less, tail)) / self.record_n


def score(now: datetime, metrics: Collection[int] | None = None) -> int:
    """Score the forecasts of *metrics* (None: of all) whose actual values are known; return how many.

    The actual value of a forecast is the first value of a later slot that became known after it was issued.
    """
    scored = forecasts_sql.score(now, metrics)
    counted = [forecast for forecast in scored if forecast.at is None and forecast.counts]
    daily_scores.add(_once([*counted, *(other for forecast in counted for other in _others(forecast))]))
    ours = {forecast.metric for forecast in scored if forecast.method == METHOD and forecast.at is None}
    if ours:
        found = forecasts_sql.records(ours, METHOD, RECORD_FORECASTS)
        forecasts_sql.write_records({"metric": columns.metric, **vars(_record(columns))} for columns in found)
    return len(scored)


def record_of(metric: int, method: str) -> ForecastRecord:
    """Return the record of the forecasts of a metric (its key) by *method*."""
    found = forecasts_sql.records([metric], method, RECORD_FORECASTS)
    return _record(found[0]) if found else ForecastRecord()


def keep_newest(names: dict[int, str], now: datetime) -> None:
    """Delete old forecasts of these metrics (names by key)."""
    if names:
        kept = [(key, KEPT.get(name, KEPT_OF_OTHERS)) for key, name in names.items()]
        forecasts_sql.prune(kept, METHOD, now - DAY)


def _others(forecast: ScoredForecast) -> Iterator[ScoredForecast]:
    """Yield the forecasts of the parts of *forecast*, and of the baseline, without intervals."""
    medians = json.loads(forecast.others) if forecast.others else {}
    if forecast.last_value is not None:
        medians["last_value"] = forecast.last_value
    for method, median in medians.items():
        yield forecast._replace(method=method, median=median, below=None, upto=None, others=None)


def _once(scored: Iterable[ScoredForecast]) -> list[ScoredForecast]:
    """Keep the first forecast of each actual value by each method.

    A method that was asked for by name is part of the default answer too, and every answer has the baseline.
    """
    first: dict[tuple[int, datetime, str], ScoredForecast] = {}
    for forecast in scored:
        first.setdefault((forecast.metric, forecast.truth_time, forecast.method), forecast)
    return list(first.values())


def _record(columns: ScoredColumns) -> ForecastRecord:
    intervals = columns.lower, columns.upper
    scores = forecast_scores(
        columns.truth, columns.median, *intervals, level=LEVEL, last_value=columns.last_value
    )
    upto, below = np.array(columns.upto), np.array(columns.below)
    return ForecastRecord(
        record_n=scores.n,
        mean_absolute_error=scores.mean_absolute_error,
        relative_error=scores.relative_error,
        mean_absolute_scaled_error=scores.mean_absolute_scaled_error,
        winkler_score=scores.winkler_score,
        less=[int((upto <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
        most=[int((below <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
    )
