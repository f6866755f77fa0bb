"""The question of *Ask and rank*: read from the query string, and as a request of the API."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.urls import reverse

from monitor.analysis.forecasts.quantiles import HIGHEST, LOWEST
from monitor.analysis.forecasts.query import CLOCK_TOLERANCE
from monitor.web.api.http.start_time import MOST_SECONDS, start_time
from monitor.web.charts.time_range import page_time
from monitor.web.pages.http.reader import zone

if TYPE_CHECKING:
    from django.http import HttpRequest

USUAL_QUANTILE = 0.9
QUANTILES = (
    ("0.5", "median"),
    ("0.8", "80 % quantile"),
    ("0.9", "90 % quantile"),
    ("0.95", "95 % quantile"),
)
STARTS = (
    ("", "now"),
    ("900", "in 15 minutes"),
    ("3600", "in 1 hour"),
    ("21600", "in 6 hours"),
    ("86400", "in 1 day"),
    ("604800", "in 1 week"),
)


class InvalidQuestion(ValueError):
    """The query string asks for nothing that can be ranked; the message says what is expected."""


@dataclass
class Question:
    """What the query string asks for. *horizon_seconds* and *at*: at most one is given."""

    application: str = ""
    text: str = ""
    series: Sequence[str] = ()
    quantile: float = USUAL_QUANTILE
    horizon_seconds: float | None = None
    at: datetime | None = None


def read_question(request: HttpRequest, names: Sequence[str], now: datetime) -> Question:
    """Return the question of the query string; the default application is the first of *names*.

    Raises:
        InvalidQuestion, InvalidRange, Refused: the message says what is expected.
    """
    query = request.GET
    texts = [text for values in query.lists() for text in values[1]]
    if any("\x00" in text for text in texts):
        raise InvalidQuestion("expected text, got a NUL character")
    application = query.get("application", "") or next(iter(names), "")
    at = page_time("at", query.get("at", ""), zone(request))
    horizon = None if at else _number("start", query.get("start", ""), 0.0, MOST_SECONDS)
    start = start_time(at, horizon, now) or now
    if start < now - CLOCK_TOLERANCE:
        raise InvalidQuestion(f"at: expected a time in the future, got {start:%Y-%m-%d %H:%M} UTC")
    quantile = _number("quantile", query.get("quantile", ""), LOWEST, HIGHEST)
    return Question(
        application,
        query.get("text", "").strip(),
        list(dict.fromkeys(query.getlist("series"))),
        USUAL_QUANTILE if quantile is None else quantile,
        horizon,
        at,
    )


def _number(name: str, text: str, least: float, most: float) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise InvalidQuestion(f"{name}: expected a number from {least:g} to {most:g}, got {text[:50]!r}")
    return number


def command_of(request: HttpRequest, question: Question, series: Sequence[str]) -> str:
    """Return the command for a shell that asks the API the same; ``$TOKEN`` is the reader's own token."""
    body: dict[str, Any] = {
        "candidates": [{"series": name} for name in series],
        "quantile": question.quantile,
    }
    if question.at is not None:
        body["at"] = question.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    elif question.horizon_seconds is not None:
        body["horizon_seconds"] = question.horizon_seconds
    server = settings.GRIDCAST_URL or request.build_absolute_uri("/")
    url = server.rstrip("/") + reverse("api-1:rank_forecasts")
    return (
        'curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n'
        f"  {shlex.quote(url)} \\\n  --data {shlex.quote(json.dumps(body))}"
    )
