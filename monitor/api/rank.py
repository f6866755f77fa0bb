"""Ranking: where is a run through soonest?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema

from monitor.api.answers import answer
from monitor.api.auth import require_read
from monitor.api.forecasts import time_asked
from monitor.api.paths import checked, path, together
from monitor.api.problems import Refused
from monitor.forecasts.quantiles import HIGHEST, LOWEST
from monitor.forecasts.query import CLOCK_TOLERANCE
from monitor.forecasts.rank import By, Ranked, Unranked, rank

MOST_CANDIDATES = 1000
QUANTILE = 0.9

router = Router()

Bindings = dict[str, list[str]]


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """Which *series*, or which *candidates* of an *application*: what each role is bound to, or all resources
    in whatever roles."""

    application: str = ""
    candidates: list[Bindings | list[str]] | None = None
    series: list[str] | None = None
    quantile: float = QUANTILE
    at: datetime | None = None
    horizon: float | None = None


class RankedOut(Schema):
    """With the probability asked for (*quantile*) a run has passed after *seconds*, begun anew after each
    that did not. *rank* counts from 1; those that are *tied* have the same. *candidate* is its place in the
    question, from 0; the rest is as of a forecast of one run's total."""

    candidate: int
    rank: int
    tied: bool
    series: str
    seconds: float
    expected_seconds: float | None
    success_probability: float
    median: float
    mean: float
    forecast: int
    n: int
    data_age_seconds: float


class UnrankedOut(Schema):
    """*code*: ``unknown``, ``ambiguous`` (several *series* are there), ``too_few``, ``segment_changed``,
    ``stale``, ``site_down``."""

    candidate: int
    code: str
    detail: str
    series: list[str]


class RankOut(Schema):
    """Every candidate is in one of them."""

    quantile: float
    at: datetime
    ranked: list[RankedOut]
    unranked: list[UnrankedOut]


_NAMES = {"type": "array", "items": {"type": "string"}}
_BODY = {
    "required": True,
    "description": f"A question about at most {MOST_CANDIDATES} candidates.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "application": {"type": "string", "description": "a probe"},
                    "candidates": {
                        "type": "array",
                        "description": "resources by role, or all resources in whatever roles",
                        "items": {"oneOf": [{"type": "object", "additionalProperties": _NAMES}, _NAMES]},
                    },
                    "series": {**_NAMES, "description": "instead of an application and candidates"},
                    "quantile": {"type": "number", "default": QUANTILE},
                    "at": {"type": "string", "format": "date-time"},
                    "horizon": {"type": "number", "description": "seconds ahead, instead of at"},
                },
            }
        }
    },
}


@router.post(
    "/rank",
    response=RankOut,
    summary="Rank paths by the time until a run has passed",
    openapi_extra={"requestBody": _BODY},
)
def rank_them(request: HttpRequest) -> HttpResponse:
    """The soonest first, from what is known of their next runs; candidates of which nothing can be told are
    listed with the reason. *at* decides which maintenance counts, and for when it is told how
    likely runs pass."""
    require_read(request)
    asked = _read(request)
    now = timezone.now()
    at = time_asked(asked.at, asked.horizon, now) or now
    if at < now - CLOCK_TOLERANCE:
        raise Refused(409, "past", f"at: {at.isoformat()} is past: that would not be a forecast")
    by, names = _wanted(asked)
    ranked, unranked = rank(
        request.user,
        by,
        names,
        application=checked(asked.application),
        probability=asked.quantile,
        at=max(at, now),
        now=now,
    )
    shown = {"ranked": [_shown(one, now) for one in ranked], "unranked": [_why(one) for one in unranked]}
    return answer({"quantile": asked.quantile, "at": at, **shown})


def _read(request: HttpRequest) -> Asked:
    try:
        asked = msgspec.json.decode(request.body, type=Asked)
    except msgspec.ValidationError as error:
        raise Refused(422, "invalid", str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, "malformed", f"expected JSON: {error}") from error
    if not LOWEST <= asked.quantile <= HIGHEST:
        raise Refused(422, "invalid", f"quantile: expected {LOWEST} to {HIGHEST}, got {asked.quantile}")
    if asked.at is not None and asked.at.tzinfo is None:
        raise Refused(422, "invalid", "at: expected a time with its offset, as 2026-03-01T12:00:00Z")
    return asked


def _wanted(asked: Asked) -> tuple[By, list[str]]:
    """By what candidates are found, and each as the depot writes it."""
    if (asked.series is None) == (asked.candidates is None) or bool(asked.candidates) != bool(
        asked.application
    ):
        raise Refused(422, "invalid", "expected either series, or an application and its candidates")
    if asked.series is not None:
        return "series", _distinct([checked(name) for name in asked.series])
    roles = [one for one in asked.candidates or () if isinstance(one, dict)]
    alone = [one for one in asked.candidates or () if not isinstance(one, dict)]
    if roles and alone:
        raise Refused(422, "invalid", "candidates: expected all by role, or none, got both")
    if roles:
        return "path", _distinct([path(one) for one in roles])
    return "resources", _distinct([together(one) for one in alone])


def _distinct(names: Sequence[str]) -> list[str]:
    if not 1 <= len(names) <= MOST_CANDIDATES:
        raise Refused(422, "too_many", f"expected 1 to {MOST_CANDIDATES} candidates, got {len(names)}")
    twice = [name for name, many in Counter(names).items() if many > 1]
    if twice:
        places = [number for number, name in enumerate(names) if name == twice[0]]
        raise Refused(422, "duplicate", f"candidates {places} are the same: {twice[0][:200]}")
    return list(names)


def _shown(one: Ranked, now: datetime) -> dict[str, Any]:
    """As ``RankedOut``."""
    known = one.candidate
    age = now - (known.known_until or now)
    return {
        "candidate": one.number,
        "rank": one.rank,
        "tied": one.tied,
        "series": known.name,
        "seconds": known.seconds,
        "expected_seconds": known.success_seconds,
        "success_probability": known.success_probability,
        "median": known.median,
        "mean": known.mean,
        "forecast": known.forecast,
        "n": known.n,
        "data_age_seconds": max(age.total_seconds(), 0.0),
    }


def _why(one: Unranked) -> dict[str, Any]:
    """As ``UnrankedOut``."""
    return {"candidate": one.number, "code": one.code, "detail": one.reason, "series": list(one.series)}
