"""The list of sites: state, series, newest result and availability of each, the worst first.

The number of queries does not depend on the number of sites, and no history is read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.analysis.availability.report import MonthOfSite, months_of_sites
from monitor.analysis.availability.site_states import (
    CurrentState,
    OperationalState,
    StateReason,
    closures_at,
    site_states,
)
from monitor.depot.series.staleness import UNSCHEDULED, Staleness, allowed_age_seconds, freshness
from monitor.models import Site
from monitor.web.places.site_counts_sql import SeriesGroup, failing_by_site, series_groups
from monitor.web.status.standings import GroupedBy, stored_failing_at, stored_totals, visible_groups

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

SITES_A_PAGE = 30
WORST, BY_NAME = "worst", "name"
ORDERS = (WORST, BY_NAME)
FAILING, HELD, MAINTENANCE = FILTERS = ("failing", "held", "maintenance")
_BEST_FIRST = (Staleness.CURRENT, Staleness.STALE, Staleness.IMPORTED, Staleness.NEVER_SEEN)


@dataclass(frozen=True)
class SeriesTotals:
    """The series of a site: how many, the newest result, and the best freshness among them.

    A site is stale when all of its results are: a single stale series is shown on its page.
    """

    series: int = 0
    newest: datetime | None = None
    freshness: Staleness = Staleness.NEVER_SEEN


@dataclass(frozen=True)
class ListedSite:
    """One line of the list; *failing* counts the series that failed there in their last run."""

    site: Site
    state: CurrentState
    failing: int
    totals: SeriesTotals
    month: MonthOfSite | None


@dataclass(frozen=True)
class SitePage:
    """One *page* of *pages*; *site_count* counts the sites of all pages."""

    lines: Sequence[ListedSite]
    month: date
    site_count: int
    page: int
    pages: int


def list_sites(
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    *,
    text: str = "",
    state: str = "",
    order: str = WORST,
    page: int = 1,
) -> SitePage:
    """Return a page of the sites that *user* may see, with *text* in their name or title (any case).

    *state* is one of ``FILTERS``, or empty. *user* must be logged in and active.
    """
    named = Site.objects.visible_to(user).filter(_contains(text)).order_by("sort_name")
    sites = list(named.only("name", "title"))
    grouped = visible_groups(user, now)
    failing = _failing_by_site(user, grouped)
    closures = closures_at({site.name for site in sites}, now, now)
    chosen = [site for site in sites if _is_chosen(state, failing.get(site.pk, 0), closures.get(site.name))]
    if order == WORST:
        chosen.sort(key=lambda site: (-failing.get(site.pk, 0), site.name not in closures))
    pages = max(1, -(-len(chosen) // SITES_A_PAGE))
    page = min(max(page, 1), pages)
    shown = chosen[(page - 1) * SITES_A_PAGE : page * SITES_A_PAGE]
    month = now.astimezone(UTC).date().replace(day=1)
    lines = _lines(user, shown, failing, grouped, month, now)
    return SitePage(lines, month, len(chosen), page, pages)


def totals_of(groups: Iterable[SeriesGroup], now: datetime) -> dict[int, SeriesTotals]:
    """Return the totals of each site (primary key) with *groups* of series. Pure."""
    by_site: dict[int, list[SeriesGroup]] = defaultdict(list)
    for group in groups:
        by_site[group.site].append(group)
    return {
        site: SeriesTotals(
            series=sum(group.series for group in own),
            newest=max((group.newest for group in own if group.newest), default=None),
            freshness=min((_freshness(group, now) for group in own), key=_BEST_FIRST.index),
        )
        for site, own in by_site.items()
    }


def _failing_by_site(user: AbstractBaseUser | AnonymousUser, grouped: GroupedBy | None) -> Counter[int]:
    """Return as ``failing_by_site``: as counted, and of the series counted before a change."""
    failing = Counter(failing_by_site(user, grouped.without if grouped else None))
    return failing + Counter(stored_failing_at(grouped)) if grouped else failing


def _totals(
    user: AbstractBaseUser | AnonymousUser, sites: Sequence[int], grouped: GroupedBy | None, now: datetime
) -> dict[int, SeriesTotals]:
    """Return the totals of *sites* (primary keys): as counted, and of the series counted before a change."""
    totals = totals_of(series_groups(user, sites, grouped.without if grouped else None), now)
    for site, series, newest, best in stored_totals(grouped, sites, now) if grouped else ():
        own = totals.get(site, SeriesTotals())
        totals[site] = SeriesTotals(
            series=own.series + series,
            newest=max(filter(None, (own.newest, newest)), default=None),
            freshness=min(own.freshness, _BEST_FIRST[best], key=_BEST_FIRST.index),
        )
    return totals


def _freshness(group: SeriesGroup, now: datetime) -> Staleness:
    allowed = (
        allowed_age_seconds(
            group.schedule,
            group.timezone,
            limit_seconds=group.limit_seconds,
            jitter_seconds=group.delay_seconds,
        )
        if group.is_enabled
        else UNSCHEDULED
    )
    return freshness(group.newest, now, allowed_age_seconds=allowed, is_imported=group.is_imported)


def _contains(text: str) -> Q:
    return Q(name__icontains=text) | Q(title__icontains=text) if text else Q()


def _is_chosen(state: str, failing: int, closures: Collection[StateReason] | None) -> bool:
    if state == FAILING:
        return failing > 0
    if state in {HELD, MAINTENANCE}:
        return any(closure.state == OperationalState(state) for closure in closures or ())
    return True


def _lines(
    user: AbstractBaseUser | AnonymousUser,
    sites: Sequence[Site],
    failing: Mapping[int, int],
    grouped: GroupedBy | None,
    month: date,
    now: datetime,
) -> list[ListedSite]:
    states = site_states(user, [site.name for site in sites], now)
    totals = _totals(user, [site.pk for site in sites], grouped, now)
    months = {each.site.pk: each for each in months_of_sites(month, now, user, sites)}
    return [
        ListedSite(
            site=site,
            state=states[site.name],
            failing=failing.get(site.pk, 0),
            totals=totals.get(site.pk, SeriesTotals()),
            month=months.get(site.pk),
        )
        for site in sites
    ]
