"""Keep what forecasters know up to date: bounded work per call, by one at a time, not lost by who is killed.

A forecaster uses the inputs of its metric in the order in which they became known. So what is new is used,
and the next answer issued, in the transaction that keeps both. Where something is not as it was used -- a
report came late, or was read anew -- the metric begins anew, and reads the depot part by part; its answer
stays until there is a newer one. Samples that go for their age change nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import transaction

from forecasting import state
from forecasting.base import Source
from forecasting.series import ITSELF
from monitor.depot import following
from monitor.depot.locks import held
from monitor.models import Current
from monitor.services import roll
from monitor.services.current import keep_current
from monitor.services.forecast_use import Work, read_part, use

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.depot.following import Followed, News
    from monitor.models import Outcome

LOCK = 0x666F7265  # "fore"
WITHIN_SECONDS = 1.0  # of one call, about
NEWS_AT_ONCE = 10_000
METRICS_AT_ONCE = 50  # in one transaction, about


@dataclass
class _Group:
    """Metrics of one series that have news."""

    series: int
    works: list[Work] = field(default_factory=list)

    @property
    def news(self) -> set[int]:
        return {key for work in self.works for key in work.news}


def refresh(now: datetime, *, within_seconds: float = WITHIN_SECONDS) -> bool:
    """Use what became known by *now*, oldest news first; whether there is more to do.

    The last batch may take longer than *within_seconds*; what somebody else does is left to him.
    """
    with held(LOCK) as is_ours:
        if not is_ours:
            return False
        until = time.monotonic() + within_seconds
        roll.gather()
        is_more = _use_news(now, until - within_seconds / 3)
        return _read_on(now, until) or is_more


def refresh_all(now: datetime) -> None:
    """Use all that became known by *now*, however long it takes."""
    while refresh(now):
        pass


def bring_up(series: Collection[int], now: datetime) -> None:
    """Let these series (their keys) have answers from all that is known at *now*, or begin to read what is
    too much to be read at once. For who asks about them before ``refresh`` has come to them."""
    bring_up_metrics([one.metric for one in following.of_series(series)], now)


def bring_up_metrics(metrics: Collection[int], now: datetime) -> None:
    """The same of these metrics, also of those that nobody follows yet."""
    with transaction.atomic():
        following.follow(metrics)
    _read_parts(metrics, now)


def told(outcome: Outcome) -> None:
    """What somebody told of his job is news; to be called in the transaction that keeps it."""
    following.note([(outcome.metric.segment.series_id, outcome.started_at)])


def begin_anew(series: Collection[int]) -> int:
    """Let all metrics of these series read the depot anew; how many these are."""
    followed = following.of_series(series)
    for some in _batches([_Group(one.series, [Work(one, {})]) for one in followed]):
        metrics = [work.metric for work in some]
        with transaction.atomic():
            following.follow(metrics)
            following.locked(metrics)
            following.begin_anew(metrics)
    return len(followed)


def drop_outdated() -> int:
    """Let metrics whose states other methods than today's have made read the depot anew."""
    return following.begin_anew_but(state.fingerprint())


def _use_news(now: datetime, until: float) -> bool:
    """Whether some are left."""
    news = following.news(now, NEWS_AT_ONCE)
    if not news:
        return False
    works = _works(news)
    waiting = _waiting(news, works)
    _forget([key for key, many in waiting.items() if not many])
    for done, some in enumerate(_batches(_grouped(works))):
        if done and time.monotonic() >= until:
            return True
        with transaction.atomic():
            went_on = use(some, now)
            _forget(_served(some, waiting))
        _keep_current(went_on)
    return len(news) == NEWS_AT_ONCE


def _keep_current(followed: Sequence[Followed]) -> None:
    """Let it be known which segments these series are at, where that may be another one now."""
    of = {one.series: one.segment for one in followed}
    kept = dict(Current.objects.filter(series__in=of).values_list("series_id", "segment_id"))
    other = [series for series, segment in of.items() if kept.get(series) != segment]
    if other:
        keep_current(other)


def _works(news: Sequence[News]) -> list[Work]:
    """Who hears of *news*."""
    of_series: dict[int, list[News]] = defaultdict(list)
    for one in news:
        of_series[one.series].append(one)
    followed = following.of_series(of_series)
    others = set(following.predicted_by(of_series)) - {one.metric for one in followed}
    works = _with_heard([*followed, *(following.of_metrics(others) if others else ())])
    for work, series in works:
        for one in (one for its in series for one in of_series.get(its, ())):
            work.hours.add(one.hour)
            work.news.add(one.key)
    return [work for work, _ in works]


def _with_heard(followed: Sequence[Followed]) -> list[tuple[Work, set[int]]]:
    """What each of *followed* hears of, and the series that this is of."""
    heard: dict[int, dict[int, Source]] = {one.metric: {one.metric: ITSELF} for one in followed}
    series = {one.metric: {one.series} for one in followed}
    for one in following.predictors(heard) if heard else ():
        heard[one.metric][one.heard] = Source(one.series_name, one.name)
        series[one.metric].add(one.series)
    return [(Work(one, heard[one.metric]), series[one.metric]) for one in followed]


def _waiting(news: Iterable[News], works: Iterable[Work]) -> dict[int, int]:
    """How many are still to know of each of *news*."""
    waiting = {one.key: 0 for one in news}
    for work in works:
        for key in work.news:
            waiting[key] += 1
    return waiting


def _served(works: Iterable[Work], waiting: dict[int, int]) -> list[int]:
    """The news that everybody knows of, now that *works* do."""
    for work in works:
        for key in work.news:
            waiting[key] -= 1
    return [key for key in {key for work in works for key in work.news} if not waiting[key]]


def _forget(keys: Collection[int]) -> None:
    if keys:
        following.forget(keys)


def _grouped(works: Iterable[Work]) -> list[_Group]:
    """By series, those first who have waited longest."""
    groups: dict[int, _Group] = {}
    for work in works:
        series = work.followed.series
        groups.setdefault(series, _Group(series)).works.append(work)
    return sorted(groups.values(), key=lambda group: min(group.news))


def _batches(groups: Iterable[_Group]) -> Iterator[list[Work]]:
    """Whole groups, together about ``METRICS_AT_ONCE``."""
    some: list[Work] = []
    for group in groups:
        some += group.works
        if len(some) >= METRICS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _read_on(now: datetime, until: float) -> bool:
    """Let those that are behind read on, part by part, until time is over; whether there is more."""
    while some := following.behind(1):
        _read_parts(some, now)
        if time.monotonic() >= until:
            return bool(following.behind(1))
    return False


def _read_parts(metrics: Collection[int], now: datetime) -> None:
    followed = following.of_metrics(metrics)
    for work, _ in _with_heard(followed):
        with transaction.atomic():
            read_part(work, now)
    _keep_current(followed)
