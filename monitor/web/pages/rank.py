"""Ask and rank: the fastest path, predicted by stage, and the request of the API that answers the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from monitor.analysis.forecasts.not_ready import NotReady
from monitor.analysis.forecasts.rank import Ranked, Unranked, rank
from monitor.analysis.forecasts.rank_details import (
    PredictedPath,
    PredictedSeconds,
    applications,
    elsewhere_paths,
    predicted_paths,
    rankable_series,
)
from monitor.core import units
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.start_time import start_time
from monitor.web.charts.stage_bar import stage_bar
from monitor.web.charts.stage_shades import DrawnStage, of_probe
from monitor.web.charts.time_range import InvalidRange
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.rank_form import (
    QUANTILES,
    STARTS,
    InvalidQuestion,
    Question,
    command_of,
    read_question,
)
from monitor.web.pages.http.read_form import accepts_long_query

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.safestring import SafeString

MOST_PATHS = 100
REASONS = {
    "unknown": "unknown series",
    "ambiguous": "several series",
    "too_few": "too few runs",
    "segment_changed": "configuration changed",
    "stale": "stale",
    "site_down": "site unavailable",
    "no_replay": "no replay",
    "unfaithful": "unfaithful replay",
}

_REFUSALS = (InvalidQuestion, InvalidRange, Refused, NotReady)  # of a question; they are no failures


@dataclass(frozen=True)
class RankedRow:
    ranked: Ranked
    path: PredictedPath
    bar: SafeString | str

    @property
    def route(self) -> str:
        """The resources of the path by role: ``compute: a · sources: b, c``."""
        roles = self.ranked.candidate.path.split(";")
        return " · ".join(role.replace("=", ": ").replace(",", ", ") for role in roles)


@dataclass(frozen=True)
class Ranking:
    """The answer to a question. *stages*: those that at least one path has, in order."""

    start: datetime
    rows: Sequence[RankedRow]
    unranked: Sequence[tuple[str, str, str]]  # series, reason, details
    stages: Sequence[DrawnStage]
    table: Sequence[tuple[Ranked, Sequence[PredictedSeconds | None]]]  # in the order of *stages*


@dataclass(frozen=True)
class RankingAnswer:
    """The *ranking* of *series*, None without any; or the *error* in words."""

    series: Sequence[str] = ()
    ranking: Ranking | None = None
    error: str = ""


@accepts_long_query
@members_only
def page(request: HttpRequest) -> HttpResponse:
    now, names = timezone.now(), applications(request.user)
    question, answer, error = Question(), RankingAnswer(), ""
    try:
        question = read_question(request, names, now)
    except _REFUSALS as problem:
        error = str(problem)
    else:
        answer = compute(request, "ranking", lambda: _answer(request, question, now)) or answer
        error = answer.error
    series, ranking = answer.series, answer.ranking
    context = {
        "applications": names,
        "question": question,
        "submitted": request.GET,
        "quantiles": QUANTILES,
        "starts": STARTS,
        "ranking": ranking,
        "is_cut": len(series) > MOST_PATHS,
        "most_paths": MOST_PATHS,
        "command": command_of(request, question, series[:MOST_PATHS]) if ranking else "",
        "error": error,
        "now": now,
    }
    return render(request, "pages/rank.html", context, status=400 if error else 200)


def _answer(request: HttpRequest, question: Question, now: datetime) -> RankingAnswer:
    series: Sequence[str] = ()
    try:
        series = question.series or _candidates(request, question)
        ranking = _ranking(request, question, series[:MOST_PATHS], now) if series else None
    except _REFUSALS as problem:
        return RankingAnswer(series, error=str(problem))
    return RankingAnswer(series, ranking)


def _candidates(request: HttpRequest, question: Question) -> Sequence[str]:
    return rankable_series(request.user, question.application, question.text, MOST_PATHS + 1)


def _ranking(request: HttpRequest, question: Question, series: Sequence[str], now: datetime) -> Ranking:
    start = start_time(question.at, question.horizon_seconds, now) or now
    ranked, unranked = rank(
        request.user,
        "series",
        series,
        application="",
        probability=question.quantile,
        at=max(start, now),
        now=now,
    )
    paths = predicted_paths([each.candidate.series for each in ranked])
    paths |= elsewhere_paths(
        {
            each.candidate.series: each.candidate.forecast
            for each in ranked
            if each.candidate.basis and each.candidate.forecast
        }
    )
    stages = _stages(ranked, paths)
    totals = [each.total.upper for each in paths.values() if each.total]
    sums = [sum(stage.median for stage in each.stages.values()) for each in paths.values()]
    most = max([*totals, *sums], default=0.0)
    rows = [_row(each, paths.get(each.candidate.series, PredictedPath()), stages, most) for each in ranked]
    table = [(row.ranked, [row.path.stages.get(stage.name) for stage in stages]) for row in rows]
    return Ranking(start, rows, [_reason(each, series) for each in unranked], stages, table)


def _stages(ranked: Sequence[Ranked], paths: Mapping[int, PredictedPath]) -> list[DrawnStage]:
    """Return the stages of *paths*, in the order of their probes."""
    measured = {name for each in paths.values() for name in each.stages}
    drawn: dict[str, DrawnStage] = {}
    for application in dict.fromkeys(each.candidate.application for each in ranked):
        for stage in of_probe(application, measured):
            if stage.name in measured:
                drawn.setdefault(stage.name, stage)
    return list(drawn.values())


def _row(ranked: Ranked, path: PredictedPath, stages: Sequence[DrawnStage], most: float) -> RankedRow:
    parts = [(stage, path.stages[stage.name].median) for stage in stages if stage.name in path.stages]
    if not parts or path.total is None:
        return RankedRow(ranked, path, "")
    total = path.total
    words = ", ".join(f"{stage.name} {units.seconds(seconds)}" for stage, seconds in parts)
    interval = f"80 % interval {units.seconds(total.lower)} to {units.seconds(total.upper)}"
    label = f"{ranked.candidate.name}: {words}; {interval}"
    return RankedRow(ranked, path, stage_bar(parts, (total.lower, total.upper), most, label))


def _reason(unranked: Unranked, series: Sequence[str]) -> tuple[str, str, str]:
    return series[unranked.number], REASONS.get(unranked.code, unranked.code), unranked.reason


entries = [NavigationEntry("Forecasts", "Ask and rank", "rank")]
urlpatterns = [path("forecasts/rank/", page, name="rank")]
