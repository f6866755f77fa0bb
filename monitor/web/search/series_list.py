"""Lists of series, filtered by site, suite and state, sorted and paged."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Q

import probes
from monitor.depot.series.kinds import of_kind
from monitor.models import Binding, Reporter, Series, Site, Suite
from monitor.models.natural_order import UNINDEXED_ORDER, sort_name
from monitor.models.run import DID_NOT_PASS
from monitor.runs.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES
from monitor.web.search.search import with_words, words_of
from monitor.web.status import latest, standings
from monitor.web.status.series_details import SeriesCell, cell_at, series_runs, sites_of_failures

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from monitor.models.series import SeriesQuerySet

SERIES_A_PAGE = 50
NOT_WORKING = "not-working"  # any state that did not pass
WORST, BY_NAME, OLDEST = "worst", "name", "oldest"
ORDERS = (WORST, BY_NAME, OLDEST)

_WORST_FIRST = [*GRID_FAILURES, *MONITOR_FAILURES]


@dataclass(frozen=True)
class SeriesChoice:
    """The series to list; an empty field does not filter.

    Attributes:
        state: a state or ``NOT_WORKING``.
        category: of ``probes.CATEGORIES``; the last run did not pass, in a stage of this category.
        kind: ``application`` or ``grid``, what the series measures.
        text: words that are part of the name of the series or of one of its sites, in any case.
    """

    site: str = ""
    suite: str = ""
    state: str = ""
    probe: str = ""
    category: str = ""
    text: str = ""
    reporter: str = ""
    kind: str = ""


@dataclass(frozen=True)
class ListedSeries:
    """One line of a list.

    Attributes:
        site: the site where the last run failed; empty if it is unknown.
        means: the mean total in seconds in each of the last 24 hours, oldest first; NaN for an hour without a
            passed run.
    """

    name: str
    probe: str
    suite: str
    enabled: bool
    cell: SeriesCell
    site: str
    means: tuple[float, ...]

    @property
    def extremes(self) -> tuple[float, float] | None:
        """The lowest and the highest of *means*; None if no hour has a passed run."""
        present = [mean for mean in self.means if not math.isnan(mean)]
        return (min(present), max(present)) if present else None


@dataclass(frozen=True)
class SeriesPage:
    """One *page* of *pages*; *series_count* counts the series of all pages."""

    lines: Sequence[ListedSeries]
    series_count: int
    page: int
    pages: int


def list_series(
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    chosen: SeriesChoice,
    *,
    order: str = WORST,
    page: int = 1,
) -> SeriesPage:
    """Return a page of the series that *user* may see and that match *chosen*, sorted by *order*."""
    first, others = _in_order(_matching(user, chosen), chosen, order, now)
    named = [] if others is None else _by_name(others, chosen, but=first)
    count = len(first) + (len(named) if isinstance(named, list) else named.order_by().count())
    pages = max(1, -(-count // SERIES_A_PAGE))
    page = min(max(page, 1), pages)
    start, stop = (page - 1) * SERIES_A_PAGE, page * SERIES_A_PAGE
    shown = [*first[start:stop], *named[max(start - len(first), 0) : max(stop - len(first), 0)]]
    return SeriesPage(lines_of(shown, chosen.site, now), count, page, pages)


def _in_order(
    matching: SeriesQuerySet, chosen: SeriesChoice, order: str, now: datetime
) -> tuple[list[int], SeriesQuerySet | None]:
    """Return the primary keys of the first of *matching* in *order*, and *matching* if others follow by name.

    Of series that follow by name, no state is read.
    """
    is_in_any_state = not (chosen.state or chosen.category)
    if is_in_any_state and order == BY_NAME:
        return [], matching
    is_failing = bool(chosen.category) or chosen.state in {NOT_WORKING, *DID_NOT_PASS}
    needs_failing = is_failing or (is_in_any_state and order == WORST)
    # A site has few series: reading the states of all of them is fast.
    failing = standings.possibly_failing(now) if needs_failing and not chosen.site else None
    if failing is None:
        return _ordered(matching, chosen, order), None
    candidates = matching.filter(pk__in=failing)
    if is_failing:
        return _ordered(candidates, chosen, order), None
    return _ordered(candidates, replace(chosen, state=NOT_WORKING), order), matching


def _by_name(
    series: SeriesQuerySet, chosen: SeriesChoice, *, but: Collection[int]
) -> list[int] | QuerySet[Series, int]:
    """Return the primary keys of *series*, sorted by name, without the keys *but*."""
    once = Series.objects.filter(pk__in=series.order_by().values("pk")) if chosen.site else series
    if not chosen.text:
        return once.exclude(pk__in=but).order_by("sort_name").values_list("pk", flat=True)
    keys = once.order_by(UNINDEXED_ORDER).values_list("pk", flat=True)  # one search finds and counts
    left_out = set(but)
    return [key for key in keys if key not in left_out]


def keys_after(
    user: AbstractBaseUser | AnonymousUser, chosen: SeriesChoice, *, name: str, at_most: int
) -> list[int]:
    """Return the primary keys of the first *at_most* series whose names sort after *name*.

    Only series that *user* may see and that match *chosen* count.
    """
    by_name = _matching(user, chosen).filter(sort_name__gt=sort_name(name))
    if chosen.state:
        return _ordered(by_name, chosen, BY_NAME)[:at_most]
    series = Series.objects.filter(pk__in=by_name.order_by().values("pk")).order_by("sort_name")
    return list(series.values_list("pk", flat=True)[:at_most])


def _matching(user: AbstractBaseUser | AnonymousUser, chosen: SeriesChoice) -> SeriesQuerySet:
    """Return the visible series of the chosen site and suite, in any state.

    A separate query for the suites avoids a join per series.
    """
    suites = Suite.objects.visible_to(user).filter(**{"name": chosen.suite} if chosen.suite else {})
    series = Series.objects.filter(suite__in=list(suites.values_list("pk", flat=True)))
    if chosen.probe:
        series = series.filter(probe=chosen.probe)
    if chosen.reporter:
        series = series.filter(reporter__in=Reporter.objects.filter(name=chosen.reporter))
    if chosen.kind:
        series = series.filter(of_kind(chosen.kind))
    if chosen.text:
        series = series.filter(_with_text(chosen.text))
    return series.filter(bindings__resource__site__name=chosen.site) if chosen.site else series


def _ordered(series: SeriesQuerySet, chosen: SeriesChoice, order: str) -> list[int]:
    """Return the primary keys of the series in the chosen state, sorted by *order*."""
    named = latest.series_columns(series, {"sort_name": ("name", "sort_name")})
    columns = {
        "state": ("letter", latest.STATE_OR_SKIPPED),
        "at": ("time", "coalesce(ended_at, slot, '-infinity')"),
    }
    if chosen.category:
        columns["stage"] = ("text", "stage")
    # Reading all states is as fast as selecting most of them.
    source = series if chosen.site else Series.objects.all()
    states = latest.latest_columns(source, named["series"], columns)
    if chosen.state:
        wanted = DID_NOT_PASS if chosen.state == NOT_WORKING else [chosen.state]
        rows = np.flatnonzero(np.isin(states["state"], [state[0].encode() for state in wanted]))
    else:
        rows = np.arange(len(named["series"]))
    if chosen.category:
        rows = rows[_failed_in(chosen.category, states["state"][rows], states["stage"][rows])]
    names = named["sort_name"][rows].astype(bytes)
    severity = np.full(len(rows), len(_WORST_FIRST))
    for rank, state in enumerate(_WORST_FIRST):
        severity[states["state"][rows] == state[0].encode()] = rank
    first = {WORST: severity, BY_NAME: np.zeros(len(rows)), OLDEST: states["at"][rows]}[order]
    keys: list[int] = named["series"][rows][np.lexsort([names, first])].tolist()
    return keys


def _with_text(text: str) -> Q:
    """Return the condition that all words of *text* are part of the name, or of that of a site."""
    words = words_of(text)
    if not words:
        return Q()
    sites = list(Site.objects.filter(with_words(["name"], words)).values_list("pk", flat=True))
    at_sites = Binding.objects.filter(resource__site__in=sites).order_by().values("series")
    in_name = with_words(["name"], words)
    return in_name | Q(pk__in=at_sites) if sites else in_name


def _failed_in(category: str, states: NDArray[np.bytes_], stages: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return which last runs did not pass, in a stage of *category* of any probe."""
    declared = (stage for name in probes.names() for stage in probes.load(name).stages)
    wanted = {stage.name for stage in declared if stage.category == category}
    failed = np.isin(states, [state[0].encode() for state in DID_NOT_PASS])
    is_wanted: NDArray[np.bool_] = np.fromiter((stage in wanted for stage in stages), bool, len(stages))
    return failed & is_wanted


def lines_of(keys: Sequence[int], site: str, now: datetime) -> list[ListedSeries]:
    """Return the lines of the series *keys*, as seen from *site*; empty: from where each run failed."""
    means = latest.hourly_means(keys, now)
    listed = Series.objects.filter(pk__in=keys).select_related("suite", "leader")
    by_key = {series.pk: series for series in listed}
    runs = series_runs(by_key.values(), now)
    failed_sites = sites_of_failures(runs)
    lines = []
    for series in (by_key[key] for key in keys if key in by_key):
        cell = cell_at(series.name, runs.get(series.pk), site, failed_sites)
        failed_at = failed_sites.get(cell.last.failed_resource, "") if cell.last else ""
        lines.append(
            ListedSeries(
                name=series.name,
                probe=series.probe,
                suite=series.suite.name,
                enabled=series.enabled,
                cell=cell,
                site=failed_at,
                means=means[series.pk],
            )
        )
    return lines
