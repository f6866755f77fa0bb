"""Rank paths by how long it takes until a run of an application has passed there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from monitor.forecasts.delivered import give
from monitor.forecasts.lookup import candidates, is_settled, quantile
from monitor.forecasts.success_state import estimates
from monitor.forecasts.unavailable import down
from monitor.models import Segment
from monitor.series.segments import segment_statuses

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.forecasts.lookup_sql import Candidate
    from monitor.forecasts.success_state import SuccessEstimate
    from monitor.series.segments import SegmentStatus

By = Literal["series", "path", "resources"]
Code = Literal["unknown", "ambiguous", "site_down", "segment_changed", "too_few", "stale"]
METRIC = "total.seconds"


@dataclass(frozen=True)
class Ranked:
    """A candidate, by its *number* in the question. Of those with equal *seconds* all have the first *rank*,
    from 1 on."""

    number: int
    rank: int
    tied: bool
    known: Candidate


@dataclass(frozen=True)
class Unranked:
    """A candidate of which nothing can be told, and why; *series* are those that were found."""

    number: int
    code: Code
    said: str
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
    """Those *asked* for (each once, see ``ready.candidates``), the quickest first; and the others. Together
    they are all. Of those that are ranked *user* may tell later what became of them."""
    found = candidates(user, by, asked, application=application, metric=METRIC, probability=probability)
    closed = down(user, _resources(found), at, now)
    new, few = _new(found), _few(found)
    of: dict[str, list[Candidate]] = {}
    for one in found:
        of.setdefault(one.place.name if by == "series" else getattr(one.place, by), []).append(one)
    known, unranked = [], []
    for number, name in enumerate(asked):
        there = of.get(name, [])
        fault = _fault(there, closed, new, few, now)
        if fault:
            unranked.append(Unranked(number, *fault, sorted(one.place.name for one in there)))
        else:
            known.append((number, there[0]))
    give([(one.forecast, one.given_at) for _, one in known], now)
    if at > now:
        known = _at(known, at, probability)
    return _ranked(known), unranked


def _fault(
    found: Sequence[Candidate],
    closed: Mapping[str, str],
    new: Collection[int],
    few: Mapping[int, SegmentStatus],
    now: datetime,
) -> tuple[Code, str] | None:
    """Why a candidate that has *found* these series cannot be ranked."""
    if not found:
        return "unknown", "there is no such series that you may see"
    if len(found) > 1:
        return "ambiguous", f"{len(found)} series are there: rank them as series"
    (one,) = found
    if shut := [closed[name] for name in one.place.resources.split(",") if name in closed]:
        return "site_down", "; ".join(sorted(set(shut)))
    if one.place.series in new:
        return "too_few", "no run has passed yet"
    if stands := few.get(one.place.series):
        return "segment_changed" if stands.changes else "too_few", stands.passed_text(one.n or 0)
    return _untold(one, now)


def _new(found: Iterable[Candidate]) -> set[int]:
    """Those of the series of which nothing has been reported, ever."""
    unsettled = {one.place.series for one in found if not is_settled(one.place)}
    if not unsettled:
        return unsettled
    ran = Segment.objects.filter(series__in=unsettled).values_list("series", flat=True)
    return unsettled - set(ran)


def _few(found: Iterable[Candidate]) -> dict[int, SegmentStatus]:
    """Those of the series of whose next run too little is known, and since when that is all."""
    few = [one.place.series for one in found if is_settled(one.place) and one.mean is None]
    return segment_statuses(few) if few else {}


def _untold(one: Candidate, now: datetime) -> tuple[Code, str] | None:
    """Why of a series that is there nothing can be told."""
    if not is_settled(one.place):
        return "segment_changed", "no run has passed of what it runs now"
    if one.seconds is None:
        return "too_few", "it is not known how likely a run passes"
    if one.stale_at is not None and now > one.stale_at:
        return "stale", f"the newest value became known at {one.known_until:%Y-%m-%d %H:%M} UTC"
    return None


def _at(
    known: Sequence[tuple[int, Candidate]], at: datetime, probability: float
) -> list[tuple[int, Candidate]]:
    """The same of runs that start *at* some time: what is ready is of the next ones. How long they take that
    pass is what the next ones do."""
    found = estimates([one.place.series for _, one in known], at)
    return [(number, _with(one, found.get(one.place.series), probability)) for number, one in known]


def _with(one: Candidate, success: SuccessEstimate | None, probability: float) -> Candidate:
    """What is known of *one*; with *success*, where that is known, too."""
    if success is None or success.quantiles is None:
        return one
    return one._replace(
        success_n=success.n,
        success_probability=success.probability,
        success_seconds=success.expected_seconds,
        seconds=quantile(success.quantiles, probability),
    )


def _ranked(known: Iterable[tuple[int, Candidate]]) -> list[Ranked]:
    in_order = sorted(known, key=lambda one: (one[1].seconds or 0.0, one[1].place.name))
    many = Counter(one.seconds for _, one in in_order)
    first: dict[float | None, int] = {}
    for place, (_, one) in enumerate(in_order, start=1):
        first.setdefault(one.seconds, place)
    return [Ranked(number, first[one.seconds], many[one.seconds] > 1, one) for number, one in in_order]


def _resources(found: Iterable[Candidate]) -> list[str]:
    return sorted({name for one in found for name in one.place.resources.split(",") if name})
