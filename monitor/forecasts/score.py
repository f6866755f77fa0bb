"""Score forecasts when their actual values arrive, and write the record that goes with every answer."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from forecasting.evaluation.metrics import forecast_scores
from forecasting.series import QUANTILE_LEVELS
from monitor.forecasts import daily_scores, forecasts_sql
from monitor.forecasts.defaults import HEADLINE, LEVEL, METHOD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from monitor.forecasts.forecasts_sql import ScoredColumns, ScoredForecast

RECORD_FORECASTS = 100  # that a record is computed from
KEPT = {HEADLINE: 2_000}  # forecasts of a metric: as many as charts show
KEPT_OF_OTHERS = 200
DAY = timedelta(days=1)


def score(now: datetime, metrics: Collection[int] | None = None) -> int:
    """Score the forecasts of *metrics* (None: of all) whose actual values are known; return how many.

    The actual value of a forecast is the first value of a later slot that became known after it was issued.
    """
    scored = forecasts_sql.score(now, metrics)
    counted = [one for one in scored if one.at is None and one.counts]
    daily_scores.add(_once([*counted, *(other for one in counted for other in _others(one))]))
    ours = {one.metric for one in scored if one.method == METHOD and one.at is None}
    if ours:
        found = forecasts_sql.records(ours, METHOD, RECORD_FORECASTS)
        forecasts_sql.write_records({"metric": one.metric, **_record(one)} for one in found)
    return len(scored)


def record_of(metric: int, method: str) -> dict[str, Any]:
    """Return the record of a metric (its key) by *method*, named as the columns of ``ForecastState``.

    Without scored forecasts it is empty.
    """
    found = forecasts_sql.records([metric], method, RECORD_FORECASTS)
    return _record(found[0]) if found else {}


def keep_newest(names: dict[int, str], now: datetime) -> None:
    """Delete old forecasts of these metrics (names by key)."""
    if names:
        kept = [(key, KEPT.get(name, KEPT_OF_OTHERS)) for key, name in names.items()]
        forecasts_sql.prune(kept, METHOD, now - DAY)


def _others(one: ScoredForecast) -> Iterator[ScoredForecast]:
    """Yield the forecasts of the methods that *one* was made of, and of the baseline, without intervals."""
    medians = json.loads(one.others) if one.others else {}
    if one.last_value is not None:
        medians["last_value"] = one.last_value
    for method, median in medians.items():
        yield one._replace(method=method, median=median, below=None, upto=None, others=None)


def _once(scored: Iterable[ScoredForecast]) -> list[ScoredForecast]:
    """Keep the first forecast of each actual value by each method.

    A method that was asked for by name is part of the default answer too, and every answer has the baseline.
    """
    first: dict[tuple[int, datetime, str], ScoredForecast] = {}
    for one in scored:
        first.setdefault((one.metric, one.truth_time, one.method), one)
    return list(first.values())


def _record(columns: ScoredColumns) -> dict[str, Any]:
    scores = forecast_scores(
        columns.truth,
        columns.median,
        columns.lower,
        columns.upper,
        level=LEVEL,
        last_value=columns.last_value,
    )
    upto, below = np.array(columns.upto), np.array(columns.below)
    return {
        "record_n": scores.n,
        "mean_absolute_error": scores.mean_absolute_error,
        "relative_error": scores.relative_error,
        "mean_absolute_scaled_error": scores.mean_absolute_scaled_error,
        "winkler_score": scores.winkler_score,
        "less": [int((upto <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
        "most": [int((below <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
    }
