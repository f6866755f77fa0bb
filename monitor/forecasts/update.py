"""Use what is new of some metrics, in one transaction: states, answers, and scores of the answers before."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from forecasting.base import OutdatedState
from monitor.db.timestamps import micros, moment
from monitor.forecasts import forecasts_sql, inputs_sql, predictors_sql, states_sql
from monitor.forecasts.answer import prospects
from monitor.forecasts.input_digest import Used
from monitor.forecasts.score import HEADLINE, keep_newest, score
from monitor.forecasts.state_update import LONG_AGO, Going, Input, by_metric

if TYPE_CHECKING:
    from forecasting.base import Source
    from monitor.forecasts.states_sql import Followed, Kept, Row

INPUTS_AT_ONCE = 500  # of a metric that reads the depot
MOST_HOURS = 200  # of one metric: who has more news than that reads everything
PRUNED_EVERY = 16  # values
TOLD_EVERY = 8  # values: how well predictors help
MARKED_EVERY = timedelta(hours=1)
FOR_EVER = datetime.max.replace(tzinfo=UTC)
logger = logging.getLogger(__name__)
_HOUR = 3_600_000_000  # microseconds
_WHOLE = 1 << 64


@dataclass
class Work:
    """A metric, what it hears of (by key), and the hours in which something of that changed."""

    followed: Followed
    heard: Mapping[int, Source]
    hours: set[datetime] = field(default_factory=set)

    @property
    def metric(self) -> int:
        return self.followed.metric


@dataclass
class _Seen:
    """What the hours of a metric have: *sums* of what was known when it went on last, and what became known
    since, or becomes known *later* than now."""

    sums: dict[int, int]
    new: list[Input] = field(default_factory=list)
    later: list[Input] = field(default_factory=list)


def use(works: Sequence[Work], now: datetime) -> list[Followed]:
    """Use what changed; who finds that it is not what it was goes back. Part of the caller's transaction.

    Returns those that have new values.
    """
    rows = _locked([work.metric for work in works])
    reading = {metric for metric, row in rows.items() if row.is_behind and row.used_until is None}
    works = [work for work in works if work.metric in rows and work.metric not in reading]
    found = _of_hours(works)
    works = _awake(works, rows, found)
    seen = {work.metric: _seen(work, rows[work.metric], found, now) for work in works}
    otherwise = [work for work in works if not _is_as_it_was(work, rows[work.metric], seen[work.metric])]
    _go_back(otherwise, found)
    gone_back = {work.metric for work in otherwise}
    works = [work for work in works if work.metric not in gone_back and not rows[work.metric].is_behind]
    note_later((work.followed.series, one) for work in works for one in seen[work.metric].later)
    works = [work for work in works if seen[work.metric].new]
    new = {work.metric: seen[work.metric].new for work in works}
    _go_on(works, rows, new, now, behind=())
    return [work.followed for work in works]


def _awake(works: Iterable[Work], rows: Mapping[int, Row], found: Mapping[int, list[Input]]) -> list[Work]:
    """Those that are not hibernating. A hibernating metric with a new value reads its whole history."""
    resting = {metric for metric, row in rows.items() if not row.is_behind and row.used_until is None}
    woken = [
        work.metric
        for work in works
        if work.metric in resting
        and (len(work.hours) > MOST_HOURS or any(True for _ in _inputs(work, found)))
    ]
    if woken:
        states_sql.begin_anew(woken)
    return [work for work in works if work.metric not in resting]


def read_part(work: Work, now: datetime) -> None:
    """Let a metric read the next part of the depot. Part of the caller's transaction."""
    rows = {row.metric: row for row in states_sql.locked([work.metric])}
    row = rows.get(work.metric)
    if row is None:
        return
    found = by_metric(inputs_sql.following(list(work.heard), row.used_until or LONG_AGO, now, INPUTS_AT_ONCE))
    new = [one for its in found.values() for one in its]
    is_behind = len(new) >= INPUTS_AT_ONCE
    if new or row.is_behind:
        _go_on([work], rows, {work.metric: new}, now, behind=[work.metric] if is_behind else ())
    if row.is_behind and not is_behind:
        later = by_metric(inputs_sql.following(list(work.heard), now, FOR_EVER, INPUTS_AT_ONCE))
        note_later((work.followed.series, one) for its in later.values() for one in its)


def note_later(later: Iterable[tuple[int, Input]]) -> None:
    """What becomes known later than now, of a clock that is fast, is news of the series then."""
    due_at: dict[tuple[int, int], int] = {}
    for series, one in later:
        place = series, one.hour
        due_at[place] = min(one.known_at, due_at.get(place, one.known_at))
    for (series, hour), at in due_at.items():
        states_sql.note([(series, moment(hour * _HOUR))], moment(at))


def _locked(metrics: Sequence[int]) -> dict[int, Row]:
    """The rows of *metrics*, which are made where there are none."""
    rows = {row.metric: row for row in states_sql.locked(metrics)}
    if len(rows) < len(metrics):
        states_sql.follow([metric for metric in metrics if metric not in rows])
        rows = {row.metric: row for row in states_sql.locked(metrics)}
    return rows


def _of_hours(works: Iterable[Work]) -> Mapping[int, list[Input]]:
    wanted = {
        (metric, hour)
        for work in works
        if len(work.hours) <= MOST_HOURS
        for metric in work.heard
        for hour in work.hours
    }
    return by_metric(inputs_sql.of_hours(wanted))


def _seen(work: Work, row: Row, found: Mapping[int, list[Input]], now: datetime) -> _Seen:
    seen = _Seen(_sums(work, found, micros(row.used_until or LONG_AGO)))
    until, by = micros(row.used_until or LONG_AGO), micros(now)
    for one in _inputs(work, found):
        if one.known_at > by:
            seen.later.append(one)
        elif one.known_at > until:
            seen.new.append(one)
    return seen


def _inputs(work: Work, found: Mapping[int, list[Input]]) -> Iterable[Input]:
    """Those of the hours of *work*: others may have asked for more hours of the same metric."""
    hours = _hours(work)
    return (one for metric in work.heard for one in found.get(metric, ()) if one.hour in hours)


def _hours(work: Work) -> set[int]:
    return numbers_of(work.hours)


def _sums(work: Work, found: Mapping[int, list[Input]], until: int) -> dict[int, int]:
    """By hour, of what was known at *until*."""
    return sums_by_hour(_hours(work), _inputs(work, found), until)


def numbers_of(hours: Iterable[datetime]) -> set[int]:
    """The numbers of *hours*, each said by its start, as inputs have them."""
    return {micros(hour) // _HOUR for hour in hours}


def sums_by_hour(hours: Iterable[int], those: Iterable[Input], until: int) -> dict[int, int]:
    """Of each of *hours* the sum of the hashes of *those* in it that were known at *until*; they are in no
    other hours."""
    sums = dict.fromkeys(hours, 0)
    for one in those:
        if one.known_at <= until:
            sums[one.hour] = (sums[one.hour] + one.hashed) % _WHOLE
    return sums


def _is_as_it_was(work: Work, row: Row, seen: _Seen) -> bool:
    """Whether all that was used of these hours is there still, and nothing else that was known then. Of hours
    that are not remembered one by one everything is looked at."""
    if len(work.hours) > MOST_HOURS:
        return False
    are = Used.load(row.used).are(seen.sums)
    return _is_all_as_it_was(work, row) if are is None else are


def _is_all_as_it_was(work: Work, row: Row) -> bool:
    rows = inputs_sql.following(list(work.heard), LONG_AGO, row.used_until or LONG_AGO, 1 << 31)
    total = sum(one.hashed for its in by_metric(rows).values() for one in its)
    return total % _WHOLE == Used.load(row.used).total


def _go_back(works: Collection[Work], found: Mapping[int, list[Input]]) -> None:
    """Let each read on from the newest mark before which nothing has changed, or everything anew."""
    if not works:
        return
    chosen: dict[int, int] = {}
    by_key = {work.metric: work for work in works}
    for mark in states_sql.marks(by_key):
        work = by_key[mark.metric]
        if mark.metric not in chosen and len(work.hours) <= MOST_HOURS:
            sums = _sums(work, found, micros(mark.used_until))
            if Used.load(mark.used).are(sums):
                chosen[mark.metric] = mark.key
    states_sql.go_back(chosen.values())
    states_sql.begin_anew([metric for metric in by_key if metric not in chosen])


def _go_on(
    works: Sequence[Work],
    rows: Mapping[int, Row],
    new: Mapping[int, Sequence[Input]],
    now: datetime,
    behind: Collection[int],
) -> None:
    """Use what is *new* of each; those that are left *behind* have no answer yet."""
    if not works:
        return
    kept = states_sql.states([work.metric for work in works])
    going, answers = [], {}
    for work in works:
        try:
            one = _going(work, rows[work.metric], kept.get(work.metric))
            one.learn(new[work.metric])
            answers[work.metric] = one.answer(now)
            going.append(one)
        except OutdatedState:
            states_sql.begin_anew([work.metric])
        except Exception:  # a method of ours is broken: nobody else has to wait for that
            logger.exception("the forecaster of %s of %s failed", *work.followed.said)
            states_sql.give_up([work.metric])
    _mark(going, rows, kept)
    states_sql.keep([one.row(is_behind=one.metric in behind) for one in going])
    _answer([one for one in going if one.metric not in behind], answers, now)


def _going(work: Work, row: Row, had: Kept | None) -> Going:
    return Going.load(work.followed, work.heard, Used.load(row.used), row.used_until, had)


def _mark(going: Iterable[Going], rows: Mapping[int, Row], kept: Mapping[int, Kept]) -> None:
    """Mark what was, where the last mark is old: who is late by less than that is not late by much."""
    due = [one.metric for one in going if one.metric in kept and _is_due(rows[one.metric])]
    if due:
        states_sql.mark(due)


def _is_due(row: Row) -> bool:
    until = row.used_until
    return until is not None and (row.marked_until is None or until - row.marked_until >= MARKED_EVERY)


def _answer(going: Sequence[Going], answers: Mapping[int, dict[str, Any] | None], now: datetime) -> None:
    """Score what was said before, and say what is expected now."""
    if not going:
        return
    score(now, [one.metric for one in going])
    forecasts_sql.answer([row for one in going if (row := answers[one.metric]) is not None])
    forecasts_sql.fall_silent([one.metric for one in going if answers[one.metric] is None])
    forecasts_sql.explain({one.followed.segment for one in going}, HEADLINE)
    _tell_predictors([one for one in going if len(one.heard) > 1 and one.n % TOLD_EVERY == 0])
    keep_newest({one.metric: one.followed.name for one in going if one.n % PRUNED_EVERY == 0}, now)


def _tell_predictors(going: Iterable[Going]) -> None:
    rows = [
        {
            "metric": one.metric,
            "series": prospect.predictor.series,
            "name": prospect.predictor.metric,
            "n": prospect.n,
            "gain": prospect.gain,
            "p_value": prospect.p_value,
            "is_kept": not prospect.dropped,
        }
        for one in going
        for prospect in prospects(one.forecaster)
    ]
    if rows:
        predictors_sql.tell_predictors(rows)
