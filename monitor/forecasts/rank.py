"""Rank paths by how long it takes until a run of an application has passed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from monitor.forecasts.defaults import HEADLINE
from monitor.forecasts.deliveries import record_deliveries
from monitor.forecasts.lookup import By, RankCandidate, candidates
from monitor.forecasts.quantiles import quantile
from monitor.forecasts.success_state import estimates
from monitor.forecasts.unavailable import find_unavailable
from monitor.models import Segment
from monitor.series.segments import segment_statuses

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.forecasts.success_state import SuccessEstimate
    from monitor.series.segments import SegmentStatus

Code = Literal["unknown", "ambiguous", "site_down", "segment_changed", "too_few", "stale"]


@dataclass(frozen=True)
class Ranked:
    """A ranked *candidate*; *number* is its position in the request.

    *rank* counts from 1. Candidates with equal *seconds* are *tied*: all have the first of their ranks.
    """

    number: int
    rank: int
    tied: bool
    candidate: RankCandidate


@dataclass(frozen=True)
class Unranked:
    """A candidate that cannot be ranked, and the *reason*; *series* are the names of the matching series."""

    number: int
    code: Code
    reason: str
    series: Sequence[str]


@dataclass(frozen=True)
class _Obstacles:
    """What prevents ranking.

    *down* has the reason by resource, *new* the series without any report, *few* the series whose current
    segment has too few values.
    """

    down: Mapping[str, str]
    new: Collection[int]
    few: Mapping[int, SegmentStatus]


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
    """Rank the candidates *asked*: return the ranked ones, fastest first, and those that cannot be ranked.

    *by* says what *asked* names, as in ``lookup.candidates``. Records that *user* received the forecasts of
    the ranked candidates, so *user* may report their outcomes.
    """
    found = candidates(user, by, asked, application=application, metric=HEADLINE, probability=probability)
    resources = sorted({name for candidate in found for name in candidate.resource_names})
    down = find_unavailable(user, resources, at, now)
    obstacles = _Obstacles(down, _new(found), _few(found))
    by_name: dict[str, list[RankCandidate]] = {}
    for candidate in found:
        by_name.setdefault(candidate.name if by == "series" else getattr(candidate, by), []).append(candidate)
    known, unranked = [], []
    for number, name in enumerate(asked):
        matching = by_name.get(name, [])
        if problem := _problem(matching, obstacles, now):
            unranked.append(Unranked(number, *problem, sorted(candidate.name for candidate in matching)))
        else:
            known.append((number, matching[0]))
    record_deliveries([(candidate.forecast, candidate.delivered_at) for _, candidate in known], now)
    if at > now:  # stored estimates are for a run that starts now
        success = estimates([candidate.series for _, candidate in known], at)
        known = [
            (number, _with(candidate, success.get(candidate.series), probability))
            for number, candidate in known
        ]
    return _ranked(known), unranked


def _problem(found: Sequence[RankCandidate], obstacles: _Obstacles, now: datetime) -> tuple[Code, str] | None:
    """Return why a candidate cannot be ranked, or None; *found* are the series that match it."""
    if not found:
        return "unknown", "there is no such series that you may see"
    if len(found) > 1:
        return "ambiguous", f"{len(found)} series are there: rank them as series"
    (candidate,) = found
    if reasons := [obstacles.down[name] for name in candidate.resource_names if name in obstacles.down]:
        return "site_down", "; ".join(sorted(set(reasons)))
    if candidate.series in obstacles.new:
        return "too_few", "no run has passed yet"
    if status := obstacles.few.get(candidate.series):
        return "segment_changed" if status.changes else "too_few", status.passed_text(candidate.n or 0)
    return _missing(candidate, now)


def _missing(candidate: RankCandidate, now: datetime) -> tuple[Code, str] | None:
    """Return why the data of *candidate* do not suffice, or None."""
    if not candidate.is_settled:
        return "segment_changed", "no run has passed of what it runs now"
    if candidate.seconds is None:
        return "too_few", "it is not known how likely a run passes"
    if candidate.stale_at is not None and now > candidate.stale_at:
        return "stale", f"the newest value became known at {candidate.known_until:%Y-%m-%d %H:%M} UTC"
    return None


def _new(found: Iterable[RankCandidate]) -> set[int]:
    """Return the series that never had a report."""
    unsettled = {candidate.series for candidate in found if not candidate.is_settled}
    if not unsettled:
        return unsettled
    ran = Segment.objects.filter(series__in=unsettled).values_list("series", flat=True)
    return unsettled - set(ran)


def _few(found: Iterable[RankCandidate]) -> dict[int, SegmentStatus]:
    """Return the series with too few values in their current segment."""
    few = [candidate.series for candidate in found if candidate.is_settled and candidate.mean is None]
    return segment_statuses(few) if few else {}


def _with(candidate: RankCandidate, success: SuccessEstimate | None, probability: float) -> RankCandidate:
    if success is None or success.success_quantiles is None:
        return candidate
    fields = vars(success) | {"seconds": quantile(success.success_quantiles, probability)}
    del fields["success_quantiles"]
    return replace(candidate, **fields)


def _ranked(known: Iterable[tuple[int, RankCandidate]]) -> list[Ranked]:
    in_order = sorted(known, key=lambda pair: (pair[1].seconds or 0.0, pair[1].name))
    counts = Counter(candidate.seconds for _, candidate in in_order)
    first: dict[float | None, int] = {}
    for place, (_, candidate) in enumerate(in_order, start=1):
        first.setdefault(candidate.seconds, place)
    return [
        Ranked(number, first[candidate.seconds], counts[candidate.seconds] > 1, candidate)
        for number, candidate in in_order
    ]
