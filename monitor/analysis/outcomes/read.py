"""Read what became of the runs that a user may see: stored counts, and the runs of hours not counted yet.

Counts are stored for all series; which of them a user may see is decided when they are read. The runs
themselves are read for the hours that the range covers in part, and for those that ``worker.count`` has not
reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from django.core.exceptions import EmptyResultSet

from monitor.analysis.outcomes import runs_sql, store_sql
from monitor.analysis.outcomes.blocks import KEY, PASSED, REPAIRS, SERIES, Names, unpack_failures
from monitor.analysis.outcomes.coverage import DAY, Coverage, Span, floor
from monitor.core.db.timestamps import micros
from monitor.depot.series.arrays_sql import keys_of, positions
from monitor.models import OutcomeProgress, Series, Suite
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from numpy.typing import NDArray

    from monitor.analysis.outcomes.blocks import Numbers
    from monitor.models.series import SeriesQuerySet

HOUR_MICROS = 3_600_000_000


@dataclass(frozen=True)
class HourCounts:
    """The number of *runs* in each hour that has some; *hours* are microseconds since 1970."""

    hours: Numbers
    runs: Numbers


class RunOutcomes:
    """The runs with slots from *start* until before *end* that *user* may see.

    With *site*, those of series that use it, with *series*, those of the series with this name. Everything is
    read when it is first asked for.
    """

    def __init__(
        self,
        user: AbstractBaseUser | AnonymousUser,
        start: datetime,
        end: datetime,
        *,
        site: str = "",
        series: str = "",
    ) -> None:
        self.user = user
        self.range = Span(start.astimezone(UTC), max(start, end).astimezone(UTC))
        self._site, self._name = site, series
        self._has_whole_suites = not site and not series
        self._names = Names()

    @cached_property
    def visible(self) -> SeriesQuerySet:
        visible = Series.objects.order_by()
        if not sees_all(self.user):
            visible = visible.filter(suite__in=self._suites.tolist())  # faster than as a subquery
        if self._site:
            visible = visible.filter(bindings__resource__site__name=self._site).distinct()
        return visible.filter(name=self._name) if self._name else visible

    @cached_property
    def series(self) -> Numbers:
        """The keys of the series, in order."""
        try:
            sql, parameters = self.visible.values("pk").query.sql_with_params()
        except EmptyResultSet:
            return np.empty(0, np.int64)
        return np.sort(keys_of(sql, parameters))

    def positions(self, series: Numbers) -> Numbers:
        """Return the position of each of *series* among ``self.series``; -1 for those that are not there."""
        return positions(self.series, series)

    @cached_property
    def _coverage(self) -> Coverage:
        progress = OutcomeProgress.objects.first()
        end = self.range.end
        return Coverage(self.range, Span(progress.since, progress.until) if progress else Span(end, end))

    @cached_property
    def failed(self) -> NDArray[np.void]:
        """The failed runs (``FAILURE``), in order of slots."""
        return self._failed(has_names=True)

    @cached_property
    def names(self) -> list[str]:
        """The names of resources and stages, to whose positions ``failed`` refers."""
        _ = self.failed
        return self._names.listed

    @cached_property
    def failed_unnamed(self) -> NDArray[np.void]:
        """As ``failed``, with undefined resources and stages."""
        return self._failed(has_names=False)

    def _failed(self, *, has_names: bool) -> NDArray[np.void]:
        (before, after), hours = self._coverage.raw, self._coverage.hours
        rows = store_sql.failures_between(*hours, has_names=has_names) if hours else []
        parts = [
            runs_sql.failed_runs(*before, self._names),
            unpack_failures(rows, self._names, has_names=has_names),
            runs_sql.failed_runs(*after, self._names),
        ]
        failed = np.concatenate(parts)
        return failed[self.positions(failed["series"]) >= 0]

    @cached_property
    def _passed_runs(self) -> NDArray[np.void]:
        """The passed runs of hours that are not counted."""
        runs = np.concatenate([runs_sql.passed_runs(*part) for part in self._coverage.raw])
        return runs[self.positions(runs["series"]) >= 0]

    @cached_property
    def passed_by_series(self) -> Numbers:
        """The number of passed runs of each of ``self.series``."""
        parts: list[tuple[Numbers, NDArray[np.uint32]]] = []
        if self._coverage.days:
            rows = store_sql.series_of_days(*self._coverage.days)
            parts += [(np.frombuffer(shards, KEY), np.frombuffer(passed, PASSED)) for shards, passed in rows]
        for edge in filter(None, self._coverage.edges):
            parts += [
                (day.shards, day.values[:, edge.hours_of(day.day)].sum(axis=1, dtype=PASSED))
                for day in store_sql.passed_of_days(floor(edge.start, DAY), edge.end)
            ]
        of_runs = self.positions(self._passed_runs["series"])
        return self._of_series(parts) + np.bincount(of_runs, minlength=len(self.series))

    def _of_series(self, parts: Sequence[tuple[Numbers, NDArray[np.uint32]]]) -> Numbers:
        """Return the sums for ``self.series`` of *parts*: shards, with the numbers of their series."""
        shards = np.unique(np.concatenate([np.empty(0, np.int64), *(own for own, _ in parts)]))
        sums = np.zeros((len(shards) + 1, SERIES), np.int64)
        for own, numbers in parts:
            sums[np.searchsorted(shards, own)] += numbers.reshape(-1, SERIES)
        own = self.series // SERIES
        at = np.searchsorted(shards, own)
        return np.where(np.append(shards, -1)[at] == own, sums[at, self.series % SERIES], 0)

    @cached_property
    def passed_by_hour(self) -> HourCounts:
        """The number of passed runs of all series together, by hour."""
        starts, runs = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        hours = self._coverage.hours
        for day, by_hour in self._passed_of_days(Span(floor(hours.start, DAY), hours.end)) if hours else ():
            within = hours.hours_of(day)
            starts.append(micros(day) + np.arange(within.start, within.stop) * HOUR_MICROS)
            runs.append(by_hour[within])
        of_runs, counts = np.unique(self._passed_runs["slot"] // HOUR_MICROS, return_counts=True)
        starts.append(of_runs * HOUR_MICROS)
        return HourCounts(np.concatenate(starts), np.concatenate([*runs, counts]))

    def _passed_of_days(self, days: Span) -> Iterator[tuple[datetime, Numbers]]:
        """Yield the stored days of *days*, each with the passed runs of its hours."""
        if self._has_whole_suites:
            for day, by_suite in store_sql.suites_of_days(*days):
                yield day, by_suite.passed[np.isin(by_suite.suites, self._suites)].sum(axis=0)
            return
        for blocks in store_sql.passed_of_days(*days, store_sql.shards_of(self.series)):
            own = self.series[np.isin(self.series // SERIES, blocks.shards)]
            rows = blocks.values[np.searchsorted(blocks.shards, own // SERIES), :, own % SERIES]
            yield blocks.day, rows.sum(axis=0, dtype=np.int64)

    @cached_property
    def _suites(self) -> Numbers:
        keys = Suite.objects.visible_to(self.user).order_by().values_list("pk", flat=True)
        return np.array(list(keys), np.int64)

    @cached_property
    def repairs(self) -> NDArray[np.void]:
        """The sums of outages (``REPAIRS``, one item) of the days (UTC) that the range touches."""
        if not self._has_whole_suites:
            return _total(self.repairs_of(self.series))
        days, raw = self._coverage.touched_days, self._coverage.raw_days
        parts = [np.zeros(0, REPAIRS)]
        if days:
            for _, by_suite in store_sql.suites_of_days(*days):
                parts.append(by_suite.repairs[np.isin(by_suite.suites, self._suites)])
        if raw:
            counted = runs_sql.counted(*raw)
            parts.append(counted[self.positions(counted["series"]) >= 0][list(REPAIRS.names or ())])
        return _total(*parts)

    def repairs_of(self, series: Numbers) -> NDArray[np.void]:
        """Return the sums of outages of each of *series*, as ``repairs``."""
        days, raw = self._coverage.touched_days, self._coverage.raw_days
        order = np.argsort(series)
        keys, sums = series[order], np.zeros(len(series), REPAIRS)
        if days:
            for blocks in store_sql.repairs_of_days(*days, store_sql.shards_of(series)):
                is_there = np.isin(keys // SERIES, blocks.shards)
                own = keys[is_there]
                _add(
                    sums,
                    np.flatnonzero(is_there),
                    blocks.values[np.searchsorted(blocks.shards, own // SERIES), own % SERIES],
                )
        if raw:
            counted = runs_sql.counted(*raw, keys.tolist())
            _add(sums, np.searchsorted(keys, counted["series"]), counted)
        result = np.zeros(len(series), REPAIRS)
        result[order] = sums
        return result


def _add(sums: NDArray[np.void], at: Numbers, values: NDArray[np.void]) -> None:
    for name in REPAIRS.names or ():
        np.add.at(sums[name], at, values[name])


def _total(*parts: NDArray[np.void]) -> NDArray[np.void]:
    total = np.zeros(1, REPAIRS)
    for name in REPAIRS.names or ():
        total[name] = sum(int(part[name].sum(dtype=np.int64)) for part in parts)
    return total
