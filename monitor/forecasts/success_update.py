"""Keep what is known of every series' success up to date, as ``forecast_use`` does of its metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forecasting import state
from forecasting.base import OutdatedState
from monitor.compression import pack_state
from monitor.db.timestamps import micros, moment
from monitor.forecasts import success_sql
from monitor.forecasts.input_digest import Used
from monitor.forecasts.score import HEADLINE
from monitor.forecasts.state_update import LONG_AGO, Input, by_metric
from monitor.forecasts.success import Course, Known, expected, loaded
from monitor.forecasts.update import FOR_EVER, MOST_HOURS, note_later, numbers_of, sums_by_hour

if TYPE_CHECKING:
    from forecasting.uncertainty.success import SuccessChance
    from monitor.forecasts.success_sql import Row

ENDS_AT_ONCE = 2_000  # of a series that reads the depot


def use(hours: Mapping[int, set[datetime]], now: datetime) -> set[int]:
    """Use what ended in these *hours* of series (by key); part of the caller's transaction. Returns those of
    which something had."""
    rows = _locked(list(hours))
    reading = {series for series, row in rows.items() if row.is_behind and row.used_until is None}
    wanted = {
        (series, hour)
        for series in rows
        if series not in reading and len(hours[series]) <= MOST_HOURS
        for hour in hours[series]
    }
    found = by_metric(success_sql.of_hours(wanted))
    anew, new = [], {}
    for series, row in rows.items():
        if series in reading:
            continue
        if not _is_as_it_was(row, hours[series], found.get(series, ())):
            anew.append(series)
        elif not row.is_behind:
            new[series] = _new(row, found.get(series, ()), now)
    if anew:
        success_sql.begin_anew(anew)
    ended = {series: rows[series] for series, ends in new.items() if ends}
    _go_on(ended, new)
    return set(ended)


def read_part(series: int, now: datetime) -> None:
    """Let a series read the next part of the depot. Part of the caller's transaction."""
    row = _locked([series]).get(series)
    if row is None:
        return
    new = by_metric(success_sql.following(series, row.used_until or LONG_AGO, now, ENDS_AT_ONCE))
    ends = new.get(series, [])
    is_behind = len(ends) >= ENDS_AT_ONCE
    if ends or row.is_behind:
        _go_on({series: row}, {series: ends}, behind=[series] if is_behind else ())
    if row.is_behind and not is_behind:
        later = by_metric(success_sql.following(series, now, FOR_EVER, ENDS_AT_ONCE)).get(series, [])
        note_later((series, one) for one in later)


def expect_again(series: Collection[int]) -> None:
    """Work out anew how long it takes until a run of each has passed: its total is expected to be another.
    Part of the caller's transaction."""
    known = []
    for row in success_sql.locked(series):
        try:
            course = loaded(row.state)
        except OutdatedState:
            continue  # it is read anew soon, and worked out then
        if chance := course.chance():
            known.append(Known(row.series, course, chance))
    _expect(known)


def _locked(series: Sequence[int]) -> dict[int, Row]:
    rows = {row.series: row for row in success_sql.locked(series)}
    if len(rows) < len(series):
        success_sql.follow([one for one in series if one not in rows])
        rows = {row.series: row for row in success_sql.locked(series)}
    return rows


def _is_as_it_was(row: Row, hours: Collection[datetime], ends: Iterable[Input]) -> bool:
    """What is not remembered hour by hour is read anew: that is soon done."""
    sums = sums_by_hour(numbers_of(hours), ends, micros(row.used_until or LONG_AGO))
    return len(hours) <= MOST_HOURS and Used.load(row.used).are(sums) is True


def _new(row: Row, ends: Iterable[Input], now: datetime) -> list[Input]:
    until, by = micros(row.used_until or LONG_AGO), micros(now)
    note_later((row.series, one) for one in ends if one.known_at > by)
    return [one for one in ends if until < one.known_at <= by]


def _go_on(
    rows: Mapping[int, Row],
    new: Mapping[int, Sequence[Input]],
    behind: Collection[int] = (),
) -> None:
    kept, known = [], []
    for series, row in rows.items():
        try:
            course = loaded(row.state)
        except OutdatedState:
            success_sql.begin_anew([series])
            continue
        course.learn(new[series])
        chance = course.chance()
        kept.append(_row(row, course, new[series], chance, is_behind=series in behind))
        if chance is not None:
            known.append(Known(series, course, chance))
    success_sql.keep(kept)
    _expect(known)


def _row(
    row: Row, course: Course, ends: Sequence[Input], chance: SuccessChance | None, *, is_behind: bool
) -> dict[str, Any]:
    used = Used.load(row.used)
    for one in ends:
        used.add(one.hour, one.hashed)
    until = max((one.known_at for one in ends), default=micros(row.used_until or LONG_AGO))
    return {
        "series_id": row.series,
        "state": pack_state(state.dump(course)),
        "versions": state.versions(Course),
        "used_until": moment(until),
        "used": used.dump(),
        "is_behind": is_behind,
        "n": course.forecaster.n,
        "probability": None if chance is None else chance.first,
    }


def _expect(known: Collection[Known]) -> None:
    """Keep how long it takes until a run of each has passed, from what its total is expected to be."""
    totals = {total.series: total for total in success_sql.totals([one.series for one in known], HEADLINE)}
    found = expected([one for one in known if one.series in totals], totals)
    success_sql.expect(
        {"series": series, "expected_seconds": one.expected_seconds, "quantiles": one.quantiles}
        for series, one in found.items()
    )
