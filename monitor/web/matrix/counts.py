"""The counts of an overview: series by site, column and standing, of stored counts and of states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.depot.series.staleness import Staleness
from monitor.models import Resource, Site
from monitor.web.matrix.summary import outcomes_of_last_hour
from monitor.web.status import latest
from monitor.web.status.allowed_ages import NEVER_CURRENT
from monitor.web.status.column_arrays import NEVER
from monitor.web.status.series_details import SeriesDetails, SeriesRuns
from monitor.web.status.series_states import (
    BY_GRID,
    CURRENT,
    OURS,
    STALE,
    STANDINGS,
    SeriesStates,
    stale_rows,
    standings,
)
from monitor.web.status.standings import GroupedBy, StandingCounts, stored_at_sites

if TYPE_CHECKING:
    from monitor.models.run import State
    from monitor.models.series import SeriesQuerySet


@dataclass(frozen=True)
class MatrixColumns:
    """The columns of an overview, and its series.

    Attributes:
        names: the name of each column.
        source: a queryset that contains all of *series*.
        series: the primary keys of the series.
        group: for each of *series*, the index of its column in *names*.
        allowed_age: for each of *series*, how old its newest result may be, in seconds; None if *runs* say
            which are stale.
        details, runs: details and runs of the series; empty unless each column is a single series.
        stored: how the series beside *series* are grouped, whose stored counts are those of now; None if
            there are none.
    """

    names: Sequence[str]
    source: SeriesQuerySet
    series: NDArray[np.int64]
    group: NDArray[np.int64]
    are_suites: bool = False
    allowed_age: NDArray[np.float64] | None = None
    details: Sequence[SeriesDetails] = ()
    runs: Mapping[int, SeriesRuns] = field(default_factory=dict)
    stored: GroupedBy | None = None

    @property
    def is_imported(self) -> NDArray[np.bool_]:
        """Whether each of *series* was imported."""
        if self.allowed_age is not None:
            return np.equal(self.allowed_age, NEVER_CURRENT)
        return self._has_freshness(Staleness.IMPORTED)

    def is_stale(self, states: SeriesStates, now: datetime) -> NDArray[np.bool_]:
        """Return which of *states*, those of *series*, are older than allowed."""
        if self.allowed_age is not None:
            return stale_rows(states, self.allowed_age, now)
        return self._has_freshness(Staleness.STALE)

    def _has_freshness(self, wanted: Staleness) -> NDArray[np.bool_]:
        freshness = (self.runs[key].freshness if key in self.runs else None for key in self.series.tolist())
        return np.fromiter((each == wanted for each in freshness), bool, len(self.series))


class NamedSite(NamedTuple):
    pk: int
    name: str
    title: str


@dataclass(frozen=True)
class MatrixCounts:
    """Numbers of series by site and column.

    Attributes:
        sites: the sites, sorted by name.
        row, site: pairs of a row in the states and the position of a site of its series.
        by_standing: the number of series by site, column and standing; of stored ones, too.
    """

    sites: Sequence[NamedSite]
    row: NDArray[np.int64]
    site: NDArray[np.int64]
    by_standing: NDArray[np.int64]

    @property
    def site_names(self) -> dict[int, str]:
        return {site.pk: site.name for site in self.sites}


@dataclass(frozen=True)
class ShownSeries:
    """The series at the sites of a page: a row for each series at each site.

    Attributes:
        series: primary keys.
        group: the position of the column.
        site: the position of the site in ``MatrixCounts.sites``.
        ended_at: when the last run ended, in microseconds since 1970.
    """

    series: NDArray[np.int64]
    group: NDArray[np.int64]
    site: NDArray[np.int64]
    ended_at: NDArray[np.int64]

    def newest(self, sites: int, groups: int) -> NDArray[np.int64]:
        """Return when the newest run ended, by site and column."""
        newest = np.full((sites, groups), NEVER)
        np.maximum.at(newest, (self.site, self.group), self.ended_at)
        return newest


def counted(states: SeriesStates, columns: MatrixColumns, is_stale: NDArray[np.bool_]) -> MatrixCounts:
    """Count each series once at each of its sites, by its standing there."""
    sites = [NamedSite(*row) for row in Site.objects.order_by("sort_name").values_list("pk", "name", "title")]
    site_keys = np.array([site.pk for site in sites], dtype=np.int64)
    groups = len(columns.names)
    row, site = _series_at_sites(states, columns, site_keys)
    at = site * groups + states.group[row]
    standing = standings(states.state[row], states.culprit[row], site_keys[site])
    standing[(is_stale | states.is_imported)[row]] = STALE
    shape = (len(sites), groups, len(STANDINGS))
    counts = np.bincount(at * len(STANDINGS) + standing, minlength=np.prod(shape))
    return MatrixCounts(sites, row, site, counts.reshape(shape))


def with_stored(counts: MatrixCounts, stored: StandingCounts) -> MatrixCounts:
    by_standing = counts.by_standing.copy()
    site = latest.positions_of(stored.site, np.array([each.pk for each in counts.sites], dtype=np.int64))
    is_at_site = site >= 0
    at = (site[is_at_site], stored.group[is_at_site], stored.standing[is_at_site])
    np.add.at(by_standing, at, stored.n[is_at_site])
    return replace(counts, by_standing=by_standing)


def shown_series(
    counts: MatrixCounts, states: SeriesStates, columns: MatrixColumns, shown_sites: NDArray[np.int64]
) -> ShownSeries:
    """Return the series at *shown_sites*."""
    is_shown = np.isin(counts.site, shown_sites)
    row, site = counts.row[is_shown], counts.site[is_shown]
    shown = ShownSeries(states.series[row], states.group[row], site, states.ended_at[row])
    if not columns.stored:
        return shown
    keys = np.array([each.pk for each in counts.sites], dtype=np.int64)
    stored = stored_at_sites(columns.stored, keys[shown_sites].tolist())
    return ShownSeries(
        np.append(shown.series, stored["series"]),
        np.append(shown.group, stored["group"]),
        np.append(shown.site, latest.positions_of(stored["site"], keys)),
        np.append(shown.ended_at, stored["ended_at"]),
    )


@dataclass(frozen=True)
class MatrixTotals:
    """Numbers of series, of stale and of current ones, and of the runs of the last hour by state."""

    series: int
    stale: int
    current: int
    outcomes: Mapping[str, int]

    def plus(self, stored: StandingCounts, outcomes: Mapping[State, int]) -> MatrixTotals:
        is_once = stored.site == 0
        is_stale = is_once & (stored.standing == STALE)
        is_current = is_once & np.isin(stored.standing, CURRENT)
        sums = Counter(self.outcomes) + Counter({str(state): n for state, n in outcomes.items()})
        return MatrixTotals(
            self.series + int(stored.n[is_once].sum()),
            self.stale + int(stored.n[is_stale].sum()),
            self.current + int(stored.n[is_current].sum()),
            {state: sums[state] for state in sorted(sums)},
        )


def totals_of_states(states: SeriesStates, is_stale: NDArray[np.bool_], now: datetime) -> MatrixTotals:
    is_stale = is_stale & ~states.is_imported
    is_current = np.isin(states.state, [b"p", *BY_GRID, *OURS]) & ~states.is_imported & ~is_stale
    outcomes = outcomes_of_last_hour(states, now)
    return MatrixTotals(len(states.series), int(is_stale.sum()), int(is_current.sum()), outcomes)


def _series_at_sites(
    states: SeriesStates, columns: MatrixColumns, sites: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of (row in *states*, position in *sites*), one for each site of each series."""
    if not len(states.series):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    bindings = latest.binding_columns(columns.source)
    resources = np.array(Resource.objects.order_by().values_list("pk", "site_id"), dtype=np.int64).reshape(
        -1, 2
    )
    site_of_resource = latest.positions_of(resources[:, 1], sites)
    row = latest.positions_of(bindings["series"], states.series)
    resource = latest.positions_of(bindings["resource"], resources[:, 0])
    site = latest.take(site_of_resource, resource, -1)
    is_visible = (row >= 0) & (site >= 0)
    pairs = np.sort(row[is_visible] * len(sites) + site[is_visible])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # a series may have several resources at a site
    row, site = np.divmod(pairs, max(len(sites), 1))
    return row, site
