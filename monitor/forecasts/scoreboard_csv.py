"""The tables of the scoreboard, as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from monitor.forecasts.scoreboard import RecentForecast, Score, ScoreFilter, recent_forecasts, scoreboard

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

Part = Literal["methods", "metrics", "sites", "times", "last"]
PARTS: Sequence[Part] = get_args(Part)
MOST_CHARACTERS = 100  # of the metric in the file name
_LAST = ("issued_at", "truth_time", "truth", "median", "mean", "lower", "upper", "level", "n", "method")


class CsvTable(NamedTuple):
    """A CSV file: its *name* and *text*."""

    name: str
    text: str


def table(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter, part: Part, now: datetime) -> CsvTable:
    """Return one part of the scoreboard that *user* may see."""
    metric = re.sub(r"[^\w.-]", "", choice.metric)[:MOST_CHARACTERS]
    rows = (
        _last_rows(recent_forecasts(user, choice))
        if part == "last"
        else _score_rows(getattr(scoreboard(user, choice, now), part))
    )
    return CsvTable(f"forecasts-{part}-{metric}-{now:%Y-%m-%d}.csv", _csv(rows))


def _score_rows(found: Iterable[Score]) -> Iterable[Sequence[Any]]:
    yield [field.name for field in fields(Score)]
    for score in found:
        yield list(asdict(score).values())


def _last_rows(found: Iterable[RecentForecast]) -> Iterable[Sequence[Any]]:
    yield ["series", "unit", *_LAST]
    for recent in found:
        yield [recent.series, recent.unit, *(_text(getattr(recent.forecast, name)) for name in _LAST)]


def _text(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()
