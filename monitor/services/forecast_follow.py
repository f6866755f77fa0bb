"""Keep what forecasters know up to date: bounded work per call, by one at a time, not lost by who is killed.

A forecaster uses the inputs of its metric in the order in which they became known. So what is new is used,
and the next answer issued, in the transaction that keeps both. Where something is not as it was used -- a
report came late, or was read anew -- the metric begins anew, and reads the depot part by part; its answer
stays until there is a newer one. Samples that go for their age change nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from django.db import transaction

from forecasting import state
from forecasting.base import Outdated, Source
from monitor.depot import following, inputs, issuing
from monitor.depot.arrays import micros, moment
from monitor.depot.following import Followed, News, Row
from monitor.depot.locks import held
from monitor.depot.used import Used
from monitor.models import Outcome
from monitor.services import roll
from monitor.services.forecast_learn import LONG_AGO, Going, Input, by_metric, heard_by
from monitor.services.forecast_score import keep_newest, score

One = TypeVar("One")
LOCK = 0x666F7265  # "fore"
WITHIN_SECONDS = 1.0  # of one call, about
NEWS_AT_ONCE = 20_000
METRICS_AT_ONCE = 50  # in one transaction
INPUTS_AT_ONCE = 1_000  # of a metric that reads the depot
MOST_HOURS = 200  # of one metric: who has more news than that reads everything
PRUNED_EVERY = 64  # values
FOR_EVER = datetime.max.replace(tzinfo=UTC)
_HOUR = 3_600_000_000  # microseconds


@dataclass(frozen=True)
class Progress:
    """How many metrics are followed, how many of these are still reading the depot, and what news wait."""

    followed: int
    behind: int
    news: int


@dataclass
class _Work:
    """A metric, the hours of which it has news, and the keys of these."""

    followed: Followed
    heard: Mapping[int, Source]
    hours: set[datetime] = field(default_factory=set)
    news: set[int] = field(default_factory=set)


@dataclass
class _Batch:
    """What becomes of some metrics in one transaction."""

    now: datetime
    gone_on: list[Going] = field(default_factory=list)
    behind: set[int] = field(default_factory=set)  # of those that have gone on
    anew: list[int] = field(default_factory=list)


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
    followed = [one.metric for one in following.of_series(series)]
    for some in _batches(followed):
        with transaction.atomic():
            following.follow(some)
            following.locked(some)
            following.begin_anew(some)
    return len(followed)


def drop_outdated() -> int:
    """Let metrics whose states other methods than today's have made read the depot anew; how many are."""
    return following.begin_anew_but(state.fingerprint())


def _use_news(now: datetime, until: float) -> bool:
    """Whether some are left."""
    news = following.news(now, NEWS_AT_ONCE)
    if not news:
        return False
    works = _works(news)
    waiting = defaultdict(int, {one.key: 0 for one in news})
    for work in works:
        for key in work.news:
            waiting[key] += 1
    _forget([key for key, many in waiting.items() if not many])
    for done, some in enumerate(_batches(works)):
        if done and time.monotonic() >= until:
            return True
        with transaction.atomic():
            _use(some, now)
            for work in some:
                for key in work.news:
                    waiting[key] -= 1
            _forget({key for work in some for key in work.news if not waiting[key]})
    return len(news) == NEWS_AT_ONCE


def _forget(keys: Collection[int]) -> None:
    if keys:
        following.forget(keys)


def _works(news: Sequence[News]) -> list[_Work]:
    """Who hears of *news*, those first who have waited longest."""
    of_series: dict[int, list[News]] = defaultdict(list)
    for one in news:
        of_series[one.series].append(one)
    followed = following.of_series(of_series)
    works = [_Work(one, heard_by(one, followed)) for one in followed]
    for work in works:
        for one in of_series[work.followed.series]:
            work.hours.add(one.hour)
            work.news.add(one.key)
    return sorted(works, key=lambda work: (min(work.news), work.followed.metric))


def _use(works: Sequence[_Work], now: datetime) -> None:
    """One batch; part of the caller's transaction."""
    metrics = [work.followed.metric for work in works]
    rows = _locked(metrics)
    there = [work for work in works if work.followed.metric in rows]
    found = _of_hours([work for work in there if not rows[work.followed.metric].is_behind])
    batch = _Batch(now)
    news: dict[int, list[Input]] = {}
    for work in there:
        row = rows[work.followed.metric]
        new = _new(work, row, found, batch)
        if new:
            news[work.followed.metric] = new
    kept = following.states(list(news))
    for work in there:
        metric = work.followed.metric
        if metric in news:
            row = rows[metric]
            _go_on(work, row, kept.get(metric), news[metric], batch)
    _keep(batch)


def _locked(metrics: Sequence[int]) -> dict[int, Row]:
    rows = {row.metric: row for row in following.locked(metrics)}
    if len(rows) < len(metrics):
        following.follow([metric for metric in metrics if metric not in rows])
        rows = {row.metric: row for row in following.locked(metrics)}
    return rows


def _of_hours(works: Iterable[_Work]) -> Mapping[int, list[Input]]:
    wanted = {
        (metric, hour)
        for work in works
        if len(work.hours) <= MOST_HOURS
        for metric in work.heard
        for hour in work.hours
    }
    return by_metric(inputs.of_hours(wanted))


def _new(work: _Work, row: Row, found: Mapping[int, list[Input]], batch: _Batch) -> list[Input]:
    """What of *work*'s hours has not been used yet, if all that has is as it was; else it begins anew."""
    metric = work.followed.metric
    if row.is_behind and row.used_until is None:
        return []  # it reads everything
    if len(work.hours) > MOST_HOURS:
        batch.anew.append(metric)
        return []
    now, until = micros(batch.now), micros(row.used_until or LONG_AGO)
    hours = {micros(hour) // _HOUR for hour in work.hours}
    sums, new, later = dict.fromkeys(hours, 0), [], []
    for heard in work.heard:
        for one in found.get(heard, ()):
            if one.hour not in sums:
                continue
            if one.known_at <= until:
                sums[one.hour] += one.hashed
            elif one.known_at <= now:
                new.append(one)
            else:
                later.append(one)
    are = Used.load(row.used).are({hour: total % (1 << 64) for hour, total in sums.items()})
    if are is False or (are is None and not _is_as_it_was(work, row)):
        batch.anew.append(metric)
        return []
    if later and not row.is_behind:
        _note(work.followed.series, later)
    return [] if row.is_behind else new


def _is_as_it_was(work: _Work, row: Row) -> bool:
    """Whether all that was used is there still, of hours as well that are not remembered one by one."""
    until = row.used_until or LONG_AGO
    rows = inputs.following(list(work.heard), LONG_AGO, until, 1 << 31)
    total = sum(one.hashed for its in by_metric(rows).values() for one in its)
    return total % (1 << 64) == Used.load(row.used).total


def _go_on(work: _Work, row: Row, kept: following.Kept | None, new: Sequence[Input], batch: _Batch) -> None:
    try:
        going = Going.load(work.followed, work.heard, Used.load(row.used), row.used_until, kept)
    except Outdated:
        batch.anew.append(work.followed.metric)
        return
    going.learn(new)
    batch.gone_on.append(going)


def _keep(batch: _Batch) -> None:
    """States and answers, scores and records."""
    if batch.anew:
        following.begin_anew(batch.anew)
    if not batch.gone_on:
        return
    following.keep([one.row(is_behind=one.followed.metric in batch.behind) for one in batch.gone_on])
    done = [one for one in batch.gone_on if one.followed.metric not in batch.behind]
    if not done:
        return
    score(batch.now, [one.followed.metric for one in done])
    answers = [(one.followed.metric, one.answer(batch.now)) for one in done]
    issuing.answer([row for _, row in answers if row is not None])
    issuing.fall_silent([metric for metric, row in answers if row is None])
    old = {one.followed.metric: one.followed.name for one in done if one.forecaster.used % PRUNED_EVERY == 0}
    keep_newest(old)


def _read_on(now: datetime, until: float) -> bool:
    """Let those that are behind read on, part by part, until time is over; whether there is more."""
    while some := following.behind(1):
        _read_parts(some, now)
        if time.monotonic() >= until:
            return bool(following.behind(1))
    return False


def _read_parts(metrics: Collection[int], now: datetime) -> None:
    followed = following.of_segments_of(metrics)
    for one in followed:
        if one.metric in metrics:
            _read_part(one, heard_by(one, followed), now)


@transaction.atomic
def _read_part(followed: Followed, heard: Mapping[int, Source], now: datetime) -> None:
    """Let one read the next part of the depot."""
    rows = following.locked([followed.metric])
    if not rows:
        return
    row = rows[0]
    batch = _Batch(now)
    work = _Work(followed, heard)
    found = by_metric(inputs.following(list(heard), row.used_until or LONG_AGO, now, INPUTS_AT_ONCE))
    new = [one for its in found.values() for one in its]
    if len(new) >= INPUTS_AT_ONCE:
        batch.behind.add(followed.metric)
    if new or row.is_behind:
        _go_on(work, row, following.states([followed.metric]).get(followed.metric), new, batch)
        _keep(batch)
    if row.is_behind and followed.metric not in batch.behind:
        _note_later(work, now)


def _note_later(work: _Work, now: datetime) -> None:
    """What becomes known later than now, of a clock that is fast, is news then."""
    found = by_metric(inputs.following(list(work.heard), now, FOR_EVER, INPUTS_AT_ONCE))
    later = [one for its in found.values() for one in its]
    if later:
        _note(work.followed.series, later)


def _note(series: int, later: Sequence[Input]) -> None:
    due_at = moment(min(one.known_at for one in later))
    following.note({(series, moment(one.hour * _HOUR)) for one in later}, due_at)


def _batches(of: Sequence[One]) -> Iterator[list[One]]:
    each = iter(of)
    while some := list(islice(each, METRICS_AT_ONCE)):
        yield some
