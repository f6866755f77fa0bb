"""Score forecasts when their truth arrives, and keep the record that goes with every answer."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from forecasting.evaluation.metrics import forecast_scores
from forecasting.series import QUANTILE_LEVELS
from monitor.forecasts import daily_scores, forecasts_sql
from monitor.forecasts.defaults import HEADLINE, LEVEL, METHOD
from monitor.forecasts.forecasts_sql import Record, Scored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

LAST = 100  # forecasts: what a record is of
KEPT = {HEADLINE: 2_000}  # forecasts of a metric: what charts show
KEPT_OF_OTHERS = 200
A_DAY = timedelta(days=1)

__all__ = ["HEADLINE", "LAST", "Scored", "keep_newest", "record_of", "score", "score_all"]


def score_all(now: datetime) -> int:
    """Give every forecast whose truth is known at *now* its truth; how many."""
    return score(now, None)


def score(now: datetime, metrics: Collection[int] | None) -> int:
    """Score those of *metrics* (None: all), and bring their records up to date; how many were scored."""
    scored = forecasts_sql.score(now, metrics)
    counted = [one for one in scored if one.at is None and one.counts]
    daily_scores.add(_once([*counted, *(other for one in counted for other in _others(one))]))
    ours = {one.metric for one in scored if one.method == METHOD and one.at is None}
    if ours:
        found = forecasts_sql.records(ours, METHOD, LAST)
        forecasts_sql.keep_records([{"metric": record.metric, **_figures(record)} for record in found])
    return len(scored)


def record_of(metric: int, method: str) -> dict[str, Any] | None:
    """How the newest ``LAST`` forecasts of a metric (its key) by *method* have fared, as ``ForecastState``
    has it of our own; None: of none the truth is known."""
    found = forecasts_sql.records([metric], method, LAST)
    return _figures(found[0]) if found else None


def keep_newest(names: dict[int, str], now: datetime) -> None:
    """Let old forecasts of these metrics (names by key) go."""
    if names:
        kept = [(key, KEPT.get(name, KEPT_OF_OTHERS)) for key, name in names.items()]
        forecasts_sql.prune(kept, METHOD, now - A_DAY)


def _others(one: Scored) -> Iterator[Scored]:
    """What the methods that *one* was made of would have said, and who always says the last value: without
    intervals, which are not kept."""
    said = json.loads(one.others) if one.others else {}
    if one.last_value is not None:
        said["last_value"] = one.last_value
    for method, median in said.items():
        yield one._replace(method=method, median=median, below=None, upto=None, others=None)


def _once(scored: Iterable[Scored]) -> list[Scored]:
    """Of each method the first about each truth: what was asked for by name is part of the usual answer, too,
    and every answer knows the last value."""
    first: dict[tuple[int, datetime, str], Scored] = {}
    for one in scored:
        first.setdefault((one.metric, one.truth_time, one.method), one)
    return list(first.values())


def _figures(record: Record) -> dict[str, Any]:
    figures = forecast_scores(
        record.truth, record.median, record.lower, record.upper, level=LEVEL, last_value=record.last_value
    )
    upto, below = np.array(record.upto), np.array(record.below)
    return {
        "n": figures.n,
        "mean_absolute_error": figures.mean_absolute_error,
        "relative_error": figures.relative_error,
        "mean_absolute_scaled_error": figures.mean_absolute_scaled_error,
        "winkler_score": figures.winkler_score,
        "less": [int((upto <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
        "most": [int((below <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
    }
