"""Keep what forecasters know up to date: bounded work per call, by one at a time, not lost by who is killed.

A forecaster uses the inputs of its metric in the order in which they became known. So what is new is used,
and the next answer issued, in the transaction that keeps both. Where something is not as it was used -- a
report came late, or was read anew -- the metric begins anew, and reads the depot part by part; its answer
stays until there is a newer one. Samples that go for their age change nothing.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

from django.db import transaction

from forecasting.base import Source
from forecasting.series import OWN_SERIES, Forecaster
from monitor.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.rollups import worker
from monitor.forecasts import predictors_sql, states_sql, success_sql, success_update
from monitor.forecasts.choose_predictors import choose_new
from monitor.forecasts.score import HEADLINE
from monitor.forecasts.success import Course
from monitor.forecasts.update import Work, read_part, use
from monitor.models import CurrentSegment
from monitor.series.current_segment import store_current_segments

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.forecasts.states_sql import Followed, News
    from monitor.models import Outcome

WITHIN_SECONDS = 1.0  # of one call, about
NEWS_AT_ONCE = 500
METRICS_AT_ONCE = 50  # in one transaction, about


@dataclass
class _Group:
    """What there is of one series to do: metrics that hear of *news* (by key), and *hours* in which its own
    runs have."""

    series: int
    works: list[Work] = field(default_factory=list)
    hours: set[datetime] = field(default_factory=set)
    news: set[int] = field(default_factory=set)


def refresh(now: datetime, *, within_seconds: float = WITHIN_SECONDS, wait: bool = False) -> bool:
    """Use what became known by *now*, oldest news first; whether there is more to do.

    The last batch may take longer than *within_seconds*; what somebody else does is left to him, unless we
    *wait* for him.
    """
    with session_lock(AdvisoryLock.FORECASTS, wait=wait) as is_ours:
        return is_ours and _refresh(now, within_seconds)


def refresh_all(now: datetime) -> None:
    """Use all that became known by *now*, however long it takes."""
    with session_lock(AdvisoryLock.FORECASTS, wait=True):
        while _refresh(now, WITHIN_SECONDS):
            pass


def bring_up(series: Collection[int], now: datetime) -> None:
    """Let these series (their keys) have answers from all that is known at *now*, or begin to read what is
    too much to be read at once. For who asks about them before ``refresh`` has come to them."""
    bring_up_metrics([one.metric for one in states_sql.of_series(series)], now)
    _read_success(series, now)


def bring_up_metrics(metrics: Collection[int], now: datetime) -> None:
    """The same of these metrics, also of those that nobody follows yet."""
    with transaction.atomic():
        states_sql.follow(metrics)
    _read_parts(metrics, now)


def told(outcome: Outcome) -> None:
    """What somebody told of his job is news; to be called in the transaction that keeps it."""
    hour = outcome.started_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    states_sql.note([(outcome.metric.segment.series_id, hour)])


def begin_anew(series: Collection[int]) -> int:
    """Let all metrics of these series read the depot anew; how many these are."""
    followed = states_sql.of_series(series)
    with transaction.atomic():
        success_sql.follow(series)
        success_sql.begin_anew(series)
    metrics = [one.metric for one in followed]
    for begin in range(0, len(metrics), METRICS_AT_ONCE):
        some = metrics[begin : begin + METRICS_AT_ONCE]
        with transaction.atomic():
            states_sql.follow(some)
            states_sql.locked(some)
            states_sql.begin_anew(some)
    return len(followed)


def drop_outdated() -> int:
    """Let whatever other methods than today's have made read the depot anew; how many these are."""
    return states_sql.begin_anew_outdated(Forecaster) + success_sql.begin_anew_outdated(Course)


def _refresh(now: datetime, within_seconds: float) -> bool:
    until = time.monotonic() + within_seconds
    worker.gather()
    is_more = _use_news(now, until - within_seconds / 3)
    is_more |= choose_new()
    return _read_on(now, until) or is_more


def _use_news(now: datetime, until: float) -> bool:
    """Whether some are left."""
    while news := states_sql.news(now, NEWS_AT_ONCE):
        if not _use_these(news, now, until):
            return True
    return False


def _use_these(news: Sequence[News], now: datetime, until: float) -> bool:
    """Use *news*; whether that was done in time."""
    groups = _grouped(news)
    waiting = Counter(key for group in groups for key in group.news)
    for some in _batches(groups):
        with transaction.atomic():
            _use(some, now)
            waiting.subtract(key for group in some for key in group.news)
            states_sql.forget(
                [key for key in {key for group in some for key in group.news} if not waiting[key]]
            )
        if time.monotonic() >= until:
            return False
    return True


def _use(groups: Sequence[_Group], now: datetime) -> None:
    """One batch; part of the caller's transaction."""
    works = [work for group in groups for work in group.works]
    _hear_what_is_chosen(works)
    used = use(works, now)
    _keep_current(used)
    ended = success_update.use({group.series: group.hours for group in groups if group.hours}, now)
    _expect_again(used, ended)


def _hear_what_is_chosen(works: Collection[Work]) -> None:
    """Somebody may have chosen predictors since *works* were found; from now on nobody does."""
    states_sql.locked([work.metric for work in works])
    chosen = {work.metric: work.heard for work, _ in _with_heard([work.followed for work in works])}
    for work in works:
        work.heard = chosen[work.metric]


def _expect_again(followed: Iterable[Followed], done: Collection[int]) -> None:
    """Where the total is expected to be another, as a probe said, so is the time until a run has passed."""
    totals = {one.series for one in followed if one.name == HEADLINE}
    if left := totals.difference(done):
        success_update.expect_again(left)


def _keep_current(followed: Sequence[Followed]) -> None:
    """Let it be known which segments these series are at, where that may be another one now."""
    of = {one.series: one.segment for one in followed}
    kept = dict(CurrentSegment.objects.filter(series__in=of).values_list("series_id", "segment_id"))
    other = [series for series, segment in of.items() if kept.get(series) != segment]
    if other:
        found = store_current_segments(other)
        gone_back = [now for series, now in found.items() if now and kept.get(series)]
        predictors_sql.look_again(gone_back)


def _grouped(news: Sequence[News]) -> list[_Group]:
    """Who hears of *news*, by series, those first who have waited longest."""
    groups = {one.series: _Group(one.series) for one in news}
    of_series: dict[int, list[News]] = defaultdict(list)
    for one in news:
        of_series[one.series].append(one)
        groups[one.series].hours.add(one.hour)
        groups[one.series].news.add(one.key)
    for work, heard in _works(of_series):
        of_these = [told for series in heard for told in of_series.get(series, ())]
        if not of_these:  # none of what its predictor measures has the name that it listens to any more
            continue
        group = groups.setdefault(work.followed.series, _Group(work.followed.series))
        for told in of_these:
            work.hours.add(told.hour)
            group.news.add(told.key)
        group.works.append(work)
    return sorted(groups.values(), key=lambda group: min(group.news))


def _works(series: Collection[int]) -> list[tuple[Work, set[int]]]:
    """All metrics that hear of *series*, with the series that each hears of."""
    followed = states_sql.of_series(series)
    others = set(predictors_sql.predicted_by(series)) - {one.metric for one in followed}
    return _with_heard([*followed, *(states_sql.of_metrics(others) if others else ())])


def _with_heard(followed: Sequence[Followed]) -> list[tuple[Work, set[int]]]:
    """What each of *followed* hears of, and the series that this is of."""
    heard: dict[int, dict[int, Source]] = {one.metric: {one.metric: OWN_SERIES} for one in followed}
    series = {one.metric: {one.series} for one in followed}
    for one in predictors_sql.predictors(heard) if heard else ():
        heard[one.metric][one.heard] = Source(one.series_name, one.name)
        series[one.metric].add(one.series)
    return [(Work(one, heard[one.metric]), series[one.metric]) for one in followed]


def _batches(groups: Iterable[_Group]) -> Iterator[list[_Group]]:
    """Together about ``METRICS_AT_ONCE``."""
    some: list[_Group] = []
    for group in groups:
        some.append(group)
        if sum(1 + len(one.works) for one in some) >= METRICS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _read_on(now: datetime, until: float) -> bool:
    """Let those that are behind read on, part by part, until time is over; whether there is more."""
    while True:
        metrics, series = states_sql.behind(1), success_sql.behind(1)
        if not metrics and not series:
            return False
        _read_parts(metrics, now)
        _read_success(series, now)
        if time.monotonic() >= until:
            return bool(states_sql.behind(1) or success_sql.behind(1))


def _read_parts(metrics: Collection[int], now: datetime) -> None:
    followed = states_sql.of_metrics(metrics)
    for one in followed:
        with transaction.atomic():
            states_sql.locked([one.metric])  # from then on nobody changes what it listens to
            ((work, _),) = _with_heard([one])
            read_part(work, now)
    _keep_current(followed)
    with transaction.atomic():
        _expect_again(followed, ())


def _read_success(series: Iterable[int], now: datetime) -> None:
    for one in sorted(series):
        with transaction.atomic():
            success_update.read_part(one, now)
