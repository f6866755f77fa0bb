"""Ranking of paths by the time until a run has passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field

from monitor.analysis.forecasts.basis import ForecastBasis
from monitor.analysis.forecasts.lookup import By
from monitor.analysis.forecasts.quantiles import HIGHEST, LOWEST
from monitor.analysis.forecasts.query import CLOCK_TOLERANCE
from monitor.analysis.forecasts.rank import Ranked, Unranked, rank
from monitor.models.token import READ
from monitor.web.api.http.answers import answer
from monitor.web.api.http.auth import SCHEDULER_AUTH, require_read
from monitor.web.api.http.declare import declare
from monitor.web.api.http.prefer import PARAMETER, WAITING
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.query_names import (
    ROLE,
    RoleTexts,
    path,
    resource_set,
    resources_by_role,
    roles_of,
)
from monitor.web.api.http.schemas import MOST_CHARACTERS, Body, Name, NameFilter, Time
from monitor.web.api.http.start_time import Horizon, start_time

MOST_CANDIDATES = 1000
QUANTILE = 0.9

router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)


class Candidate(Body):
    """A way to run: a *series*, or the resources of an application, by role (*roles*, or *role* as in the
    query of a forecast) or in any role (*resources*). *key* is the caller's own name of the candidate; the
    answer repeats it."""

    key: Annotated[str, Field(max_length=MOST_CHARACTERS)] | None = None
    series: Name | None = None
    role: RoleTexts | None = Field(None, description=ROLE, examples=[["ring:ncsa-login,sdsc-login"]])
    roles: dict[Name, list[Name]] | None = None
    resources: list[Name] | None = None


class RankQuestion(Body):
    """The candidates, all given in the same way; all but *series* need the *application*."""

    application: NameFilter = ""
    candidates: Annotated[list[Candidate], Field(min_length=1, max_length=MOST_CANDIDATES)]
    quantile: Annotated[float, Field(ge=LOWEST, le=HIGHEST)] = QUANTILE
    at: Time | None = None
    horizon_seconds: Horizon | None = None


class ClassRatioOut(Schema):
    """The predicted *seconds* of a class of calls: *ratio* times *reference_seconds*."""

    name: str
    reference_seconds: float
    ratio: float
    seconds: float


class BasisOut(Schema):
    """What a forecast by the method ``elsewhere`` is based on. Input and output are predicted from the runs
    of the series *reference*, from those of *reference_replay*, which replays its calls on the same
    resources, and from those of *replay* on the resources of the candidate. Computing takes as long as on the
    reference, the wait in the queue as long as that of the replays."""

    signature: str = Field(description="The digest of the signature of the calls.")
    reference: str
    reference_replay: str
    reference_runs: int
    reference_age_seconds: float
    replay: str
    replay_runs: int
    replay_age_seconds: float
    io_seconds: float
    classes: list[ClassRatioOut]
    compute_seconds: float
    compute_from: str
    queue_seconds: float
    queue_bound_seconds: float


class RankedOut(Schema):
    """A candidate with its *rank*. *seconds* is the requested *quantile* of the time until a run has passed,
    if each failed run is retried at once. The other fields are those of a forecast of the total. *method* is
    ``elsewhere`` if the application has not run there often enough: *n* is 0 then, and *basis* says what the
    forecast is based on; else *basis* is null."""

    candidate: int
    key: str | None
    rank: int
    is_tied: bool
    series: str
    seconds: float
    expected_seconds: float | None
    success_probability: float
    median: float
    mean: float
    forecast: int
    n: int
    data_age_seconds: float
    method: str
    basis: BasisOut | None


class UnrankedOut(Schema):
    """*code* is ``unknown``, ``ambiguous`` (several *series* match), ``too_few``, ``segment_changed``,
    ``stale``, ``site_down``, ``no_replay`` or ``unfaithful`` (the replay of the application's calls does not
    take as long as the application)."""

    candidate: int
    key: str | None
    code: str
    detail: str
    series: list[str]


class RankOut(Schema):
    """Each candidate is either *ranked* or *unranked*."""

    quantile: float
    at: datetime
    ranked: list[RankedOut]
    unranked: list[UnrankedOut]


@router.post(
    "/forecasts/rank",
    response=RankOut,
    operation_id="rank_forecasts",
    openapi_extra=declare(
        scope=READ,
        permission=require_read,
        errors={409: ["past"], 422: ["duplicate"], 503: ["not_ready"]},
        parameters=[PARAMETER],
        example={"candidates": [{"key": "a", "series": "circle-main"}], "quantile": 0.9},
    ),
    summary="Rank candidates by the time until a run has passed",
)
def rank_forecasts(request: HttpRequest, question: RankQuestion) -> HttpResponse:
    """Rank candidates by the time until a run has passed, the fastest first. Candidates that cannot be ranked
    are listed with the reason. *at* is the time at which the run starts: candidates in a maintenance window
    at that time are not ranked, and the probability of passing is given for that time. While the paths of
    thousands of new series are stored, the answer is 503 ``not_ready``, with Retry-After; with
    ``Prefer: wait=5`` the server waits for them."""
    now = timezone.now()
    at = start_time(question.at, question.horizon_seconds, now) or now
    if at < now - CLOCK_TOLERANCE:
        raise Refused(409, "past", f"at: {at.isoformat()} is in the past")
    by, names = _wanted(question)
    ranked, unranked = WAITING.answer(
        request,
        lambda _: rank(
            request.user,
            by,
            names,
            application=question.application,
            probability=question.quantile,
            at=max(at, now),
            now=now,
        ),
    )
    keys = [candidate.key for candidate in question.candidates]
    lists = {
        "ranked": [{"key": keys[each.number], **_ranked_fields(each, now)} for each in ranked],
        "unranked": [{"key": keys[each.number], **_unranked_fields(each)} for each in unranked],
    }
    return answer({"quantile": question.quantile, "at": at, **lists})


def _wanted(question: RankQuestion) -> tuple[By, list[str]]:
    """Return how the request names its candidates, and the names in the form that the depot stores."""
    ways = {_way(number, candidate) for number, candidate in enumerate(question.candidates)}
    if len(ways) > 1:
        raise Refused(422, "invalid", f"candidates: expected all by one of {', '.join(_WAYS)}")
    (way,) = ways
    if (way == "series") == bool(question.application):
        raise Refused(422, "invalid", "expected an application, unless the candidates name series")
    if way == "series":
        return "series", _distinct([candidate.series or "" for candidate in question.candidates])
    if way == "role":
        known = roles_of(question.application)
        return "path", _distinct(
            [path(resources_by_role(each.role or [], known)) for each in question.candidates]
        )
    if way == "roles":
        return "path", _distinct([path(candidate.roles or {}) for candidate in question.candidates])
    return "resources", _distinct([resource_set(each.resources or []) for each in question.candidates])


def _way(number: int, candidate: Candidate) -> str:
    given = [way for way in _WAYS if getattr(candidate, way)]
    if len(given) != 1:
        raise Refused(422, "invalid", f"candidates.{number}: expected one of {', '.join(_WAYS)}")
    return given[0]


_WAYS = ("series", "role", "roles", "resources")


def _distinct(names: Sequence[str]) -> list[str]:
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
        "is_tied": ranked.tied,
        "series": known.name,
        "seconds": known.seconds,
        "expected_seconds": known.success_seconds,
        "success_probability": known.success_probability,
        "median": known.median,
        "mean": known.mean,
        "forecast": known.forecast,
        "n": known.n,
        "data_age_seconds": max(age.total_seconds(), 0.0),
        "method": known.method,
        "basis": known.basis and _basis_fields(known.basis, now),
    }


def _basis_fields(basis: ForecastBasis, now: datetime) -> dict[str, Any]:
    """Return the fields of ``BasisOut``."""
    ages = {"reference_age_seconds": now - basis.reference_at, "replay_age_seconds": now - basis.replay_at}
    seconds = {name: max(age.total_seconds(), 0.0) for name, age in ages.items()}
    kept = {name: value for name, value in vars(basis).items() if not name.endswith("_at")}
    return {**kept, "classes": [vars(each) for each in basis.classes], **seconds}


def _unranked_fields(unranked: Unranked) -> dict[str, Any]:
    """Return the fields of ``UnrankedOut``."""
    return {
        "candidate": unranked.number,
        "code": unranked.code,
        "detail": unranked.reason,
        "series": list(unranked.series),
    }
