"""Ranking of paths by the time until a run has passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema

from monitor.api.http.answers import answer
from monitor.api.http.auth import SCHEDULER_AUTH, require_read
from monitor.api.http.problems import Refused
from monitor.api.http.query_names import checked, path, resource_set
from monitor.api.http.start_time import start_time
from monitor.forecasts.lookup import By
from monitor.forecasts.quantiles import HIGHEST, LOWEST
from monitor.forecasts.query import CLOCK_TOLERANCE
from monitor.forecasts.rank import Ranked, Unranked, rank

MOST_CANDIDATES = 1000
QUANTILE = 0.9

router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)

Bindings = dict[str, list[str]]


class RankQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request to rank paths.

    It has either *series*, or an *application* and *candidates*. Each candidate is a mapping of roles to
    resources, or the list of all resources, whatever their roles.
    """

    application: str = ""
    candidates: list[Bindings | list[str]] | None = None
    series: list[str] | None = None
    quantile: float = QUANTILE
    at: datetime | None = None
    horizon: float | None = None


class RankedOut(Schema):
    """*candidate* is the position in the request, from 0. *rank* counts from 1; *tied* candidates have the
    same rank. *seconds* is the requested *quantile* of the time until a run has passed, if each failed run is
    retried at once. The other fields are those of a forecast of the total."""

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
    """*code* is ``unknown``, ``ambiguous`` (several *series* match), ``too_few``, ``segment_changed``,
    ``stale`` or ``site_down``."""

    candidate: int
    code: str
    detail: str
    series: list[str]


class RankOut(Schema):
    """Each candidate is either *ranked* or *unranked*."""

    quantile: float
    at: datetime
    ranked: list[RankedOut]
    unranked: list[UnrankedOut]


_NAMES = {"type": "array", "items": {"type": "string"}}
_BODY = {
    "required": True,
    "description": f"At most {MOST_CANDIDATES} candidates.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "application": {"type": "string", "description": "a probe"},
                    "candidates": {
                        "type": "array",
                        "description": "resources by role, or all resources in any roles",
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
    "/forecasts/rank",
    response=RankOut,
    operation_id="monitor_api_rank_rank_them",
    summary="Rank paths by the time until a run has passed",
    openapi_extra={"requestBody": _BODY},
)
def rank_paths(request: HttpRequest) -> HttpResponse:
    """Rank candidates by the time until a run has passed, the fastest first. Candidates that cannot be ranked
    are listed with the reason. *at* is the time at which the run starts: candidates in a maintenance window
    at that time are not ranked, and the probability of passing is given for that time. While the paths of
    thousands of new series are stored, the answer is 503 ``not_ready``, with Retry-After."""
    require_read(request)
    query = _read(request)
    now = timezone.now()
    at = start_time(query.at, query.horizon, now) or now
    if at < now - CLOCK_TOLERANCE:
        raise Refused(409, "past", f"at: {at.isoformat()} is in the past")
    by, names = _wanted(query)
    ranked, unranked = rank(
        request.user,
        by,
        names,
        application=checked(query.application),
        probability=query.quantile,
        at=max(at, now),
        now=now,
    )
    lists = {
        "ranked": [_ranked_fields(each, now) for each in ranked],
        "unranked": [_unranked_fields(each) for each in unranked],
    }
    return answer({"quantile": query.quantile, "at": at, **lists})


def _read(request: HttpRequest) -> RankQuery:
    try:
        query = msgspec.json.decode(request.body, type=RankQuery)
    except msgspec.ValidationError as error:
        raise Refused(422, "invalid", str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, "malformed", f"expected JSON: {error}") from error
    if not LOWEST <= query.quantile <= HIGHEST:
        raise Refused(422, "invalid", f"quantile: expected {LOWEST} to {HIGHEST}, got {query.quantile}")
    if query.at is not None and query.at.tzinfo is None:
        raise Refused(422, "invalid", "at: expected a time with its offset, as 2026-03-01T12:00:00Z")
    return query


def _wanted(query: RankQuery) -> tuple[By, list[str]]:
    """Return how the request names its candidates, and the names in the form that the depot stores."""
    if (query.series is None) == (query.candidates is None) or bool(query.candidates) != bool(
        query.application
    ):
        raise Refused(422, "invalid", "expected either series, or an application and its candidates")
    if query.series is not None:
        return "series", _distinct([checked(name) for name in query.series])
    by_role = [each for each in query.candidates or () if isinstance(each, dict)]
    lists = [each for each in query.candidates or () if not isinstance(each, dict)]
    if by_role and lists:
        raise Refused(422, "invalid", "candidates: expected all by role or all as lists, got both")
    if by_role:
        return "path", _distinct([path(each) for each in by_role])
    return "resources", _distinct([resource_set(each) for each in lists])


def _distinct(names: Sequence[str]) -> list[str]:
    if not 1 <= len(names) <= MOST_CANDIDATES:
        raise Refused(422, "too_many", f"expected 1 to {MOST_CANDIDATES} candidates, got {len(names)}")
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        positions = [number for number, name in enumerate(names) if name == duplicates[0]]
        raise Refused(422, "duplicate", f"candidates {positions} are the same: {duplicates[0][:200]}")
    return list(names)


def _ranked_fields(ranked: Ranked, now: datetime) -> dict[str, Any]:
    """Return the fields of ``RankedOut``."""
    known = ranked.candidate
    age = now - (known.known_until or now)
    return {
        "candidate": ranked.number,
        "rank": ranked.rank,
        "tied": ranked.tied,
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


def _unranked_fields(unranked: Unranked) -> dict[str, Any]:
    """Return the fields of ``UnrankedOut``."""
    return {
        "candidate": unranked.number,
        "code": unranked.code,
        "detail": unranked.reason,
        "series": list(unranked.series),
    }
