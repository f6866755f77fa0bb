"""The tables of the scoreboard, as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from monitor.analysis.forecasts.scoreboard import Score, ScoreFilter, recent_forecasts, scoreboard
from monitor.core.csvfile import to_csv

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

Part = Literal["methods", "metrics", "sites", "times", "last"]
PARTS: Sequence[Part] = get_args(Part)
MOST_CHARACTERS = 100  # of the metric in the file name
_FORECAST = ("median", "mean", "lower", "upper", "level", "n", "method")


def file_name(choice: ScoreFilter, part: Part, now: datetime) -> str:
    metric = re.sub(r"[^\w.-]", "", choice.metric)[:MOST_CHARACTERS]
    return f"forecasts-{part}-{metric}-{now:%Y-%m-%d}.csv"


def table(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter, part: Part, now: datetime) -> str:
    """Return one part of the scoreboard that *user* may see, as CSV text with a header."""
    if part == "last":
        header = ["series", "unit", "issued_at", "truth_time", "truth", *_FORECAST]
        return to_csv([header, *_last(user, choice)])
    scores = getattr(scoreboard(user, choice, now), part)
    return to_csv([[field.name for field in fields(Score)], *map(astuple, scores)])


def _last(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> Iterable[Sequence[Any]]:
    for forecast in recent_forecasts(user, choice):
        actual = forecast.truth_time and forecast.truth_time.isoformat(), forecast.truth
        numbers = [getattr(forecast, name) for name in _FORECAST]
        metric = forecast.metric
        yield [metric.series.name, metric.unit, forecast.issued_at.isoformat(), *actual, *numbers]
