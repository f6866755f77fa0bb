"""Rank paths by the time until a run of an application has passed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from monitor.analysis.forecasts.defaults import HEADLINE, METHOD
from monitor.analysis.forecasts.deliveries import record_deliveries
from monitor.analysis.forecasts.lookup import By, RankCandidate, candidates
from monitor.analysis.forecasts.quantiles import quantile
from monitor.analysis.forecasts.rank_elsewhere import rank_elsewhere
from monitor.analysis.forecasts.success_state import estimates
from monitor.analysis.forecasts.unavailable import find_unavailable
from monitor.depot.series.segments import segment_statuses
from monitor.models import Segment
from monitor.models.natural_order import sort_name

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.analysis.forecasts.success_state import SuccessEstimate

Code = Literal[
    "unknown", "ambiguous", "site_down", "segment_changed", "too_few", "stale", "unfaithful", "no_replay"
]
_TOO_FEW: frozenset[Code] = frozenset({"too_few", "segment_changed"})


@dataclass(frozen=True)
class Ranked:
    """A ranked *candidate*; *number* is its position in the request.

    *rank* counts from 1. Candidates with equal *seconds* are *tied*: they share the smallest of their ranks.
    """

    number: int
    rank: int
    tied: bool
    candidate: RankCandidate


class RankProblem(NamedTuple):
    code: Code
    reason: str


@dataclass(frozen=True)
class Unranked:
    """A candidate that cannot be ranked, and the *reason*; *series* has the names of the matching series."""

    number: int
    code: Code
    reason: str
    series: Sequence[str]


def rank(
    user: AbstractBaseUser | AnonymousUser,
    by: By,
    asked: Sequence[str],
    *,
    application: str,
    probability: float,
    at: datetime,
    now: datetime,
) -> tuple[list[Ranked], list[Unranked]]:
    """Rank the candidates *asked*; return ranked candidates, fastest first, and candidates without a rank.

    *by* says what *asked* names, and *application* which series count, as in ``lookup.candidates``.
    Candidates are compared by the quantile at *probability* of the time until a run has passed. *at* is the
    start of the run. Candidates with too few runs are ranked by forecasts from elsewhere where there are
    replays. Records that *user* received the forecasts of the ranked candidates, so *user* may report their
    outcomes.
    """
    found = candidates(user, by, asked, application=application, metric=HEADLINE, probability=probability)
    resources = sorted({name for candidate in found for name in candidate.resource_names})
    problems = _problems(found, find_unavailable(user, resources, at, now), now)
    found, problems = _with_elsewhere(found, problems, probability, at, now)
    by_name: dict[str, list[RankCandidate]] = {}
    for candidate in found:
        by_name.setdefault(candidate.name if by == "series" else getattr(candidate, by), []).append(candidate)
    known, unranked = [], []
    for number, name in enumerate(asked):
        matching = by_name.get(name, [])
        if len(matching) == 1 and matching[0].series not in problems:
            known.append((number, matching[0]))
            continue
        if len(matching) > 1:
            problem = RankProblem("ambiguous", f"{len(matching)} series are there: rank them as series")
        elif matching:
            problem = problems[matching[0].series]
        else:
            problem = RankProblem("unknown", "there is no such series that you may see")
        unranked.append(
            Unranked(number, *problem, sorted((candidate.name for candidate in matching), key=sort_name))
        )
    record_deliveries([(candidate.forecast, candidate.delivered_at) for _, candidate in known], now)
    if at > now:  # stored estimates are for a run that starts now
        success = estimates([each.series for _, each in known if each.method == METHOD], at)
        known = [
            (number, _with(candidate, success.get(candidate.series), probability))
            for number, candidate in known
        ]
    return _ranked(known), unranked


def _problems(
    found: Sequence[RankCandidate], down: Mapping[str, str], now: datetime
) -> dict[int, RankProblem]:
    """Return the reason why a series of *found* cannot be ranked, by key; *down* has reasons by resource."""
    settled = {candidate.series for candidate in found if candidate.is_settled}
    too_few = [each.series for each in found if each.series in settled and each.mean is None]
    statuses = segment_statuses(too_few) if too_few else {}
    unsettled = {candidate.series for candidate in found} - settled
    ran = set(Segment.objects.filter(series__in=unsettled).values_list("series", flat=True))

    def problem(candidate: RankCandidate) -> RankProblem | None:
        if candidate.series in unsettled:
            if candidate.series not in ran:
                return RankProblem("too_few", "no run has passed yet")
            return RankProblem("segment_changed", "no run has passed of what it runs now")
        if status := statuses.get(candidate.series):
            code: Code = "segment_changed" if status.changes else "too_few"
            return RankProblem(code, status.passed_text(candidate.n or 0))
        if candidate.seconds is None:
            return RankProblem("too_few", "it is not known how likely a run passes")
        if candidate.stale_at is not None and now > candidate.stale_at:
            newest = f"{candidate.known_until:%Y-%m-%d %H:%M} UTC"
            return RankProblem("stale", f"the newest value became known at {newest}")
        return None

    problems = {each.series: reason for each in found if (reason := problem(each))}
    for candidate in found:
        if reasons := {down[name] for name in candidate.resource_names if name in down}:
            problems[candidate.series] = RankProblem("site_down", "; ".join(sorted(reasons)))
    return problems


def _with_elsewhere(
    found: Sequence[RankCandidate],
    problems: Mapping[int, RankProblem],
    probability: float,
    at: datetime,
    now: datetime,
) -> tuple[list[RankCandidate], dict[int, RankProblem]]:
    """Return *found* and *problems* with forecasts from elsewhere, or with the reason why there is none."""
    without = {series for series, problem in problems.items() if problem.code in _TOO_FEW}
    open_ = [each for each in found if each.series in without or each.series not in problems]
    elsewhere = rank_elsewhere(open_, without, probability=probability, at=at, now=now)
    left = dict(problems)
    for series, refused in elsewhere.refused.items():
        if series in without:
            left[series] = RankProblem(refused.code, str(refused))
    for series, candidate in elsewhere.ranked.items():
        left.pop(series, None)
        if candidate.seconds is None:
            left[series] = RankProblem("too_few", "it is not known how likely a run passes there")
    return [elsewhere.ranked.get(each.series, each) for each in found], left


def _with(candidate: RankCandidate, success: SuccessEstimate | None, probability: float) -> RankCandidate:
    if success is None or success.success_quantiles is None:
        return candidate
    fields = vars(success) | {"seconds": quantile(success.success_quantiles, probability)}
    del fields["success_quantiles"]
    return replace(candidate, **fields)


def _ranked(known: Iterable[tuple[int, RankCandidate]]) -> list[Ranked]:
    in_order = sorted(known, key=lambda pair: (pair[1].seconds or 0.0, sort_name(pair[1].name)))
    counts = Counter(candidate.seconds for _, candidate in in_order)
    first: dict[float | None, int] = {}
    for place, (_, candidate) in enumerate(in_order, start=1):
        first.setdefault(candidate.seconds, place)
    return [
        Ranked(number, first[candidate.seconds], counts[candidate.seconds] > 1, candidate)
        for number, candidate in in_order
    ]
