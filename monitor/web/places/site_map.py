"""Sites on a map, with the links between them that series measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.analysis.availability.site_states import operational_states
from monitor.core.db import binary
from monitor.models import Resource, Series, Site
from monitor.web.status import allowed_ages, latest
from monitor.web.status.series_states import BY_GRID, SeriesStates, series_states, stale_rows

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from numpy.typing import NDArray

    from monitor.models.series import SeriesQuerySet

MOST_LINKS = 2000  # that are drawn: the failing ones first
MOST_LISTED = 5000  # series that are read by key
MOST_SITES_OF_A_LINK = 8  # a series over more sites says little about a single link
_AT_SEVERAL = b"""
SELECT series_id FROM monitor_seriesstanding WHERE cardinality(sites) > 1
UNION SELECT series_id FROM monitor_standingchange LIMIT %b
"""


@dataclass(frozen=True)
class MapSite:
    """A site; *latitude* and *longitude* in degrees are None if its place is not known."""

    name: str
    title: str
    state: str
    latitude: float | None
    longitude: float | None

    @property
    def is_placed(self) -> bool:
        return self.latitude is not None and self.longitude is not None


@dataclass(frozen=True)
class MapLink:
    """A pair of sites, by name, that *series_count* series use together.

    *failing* of them fail now, at one of the two sites or at an unknown one.
    """

    first: str
    second: str
    series_count: int
    failing: int


@dataclass(frozen=True)
class SiteMap:
    """The sites by name, and the links between them, those with most failing series first."""

    sites: Sequence[MapSite]
    links: Sequence[MapLink]


def site_map(user: AbstractBaseUser | AnonymousUser, now: datetime) -> SiteMap:
    """Return the sites that *user* may see, with the links of the series that *user* may see.

    The number of queries does not depend on the number of sites or series.
    """
    sites = list(Site.objects.visible_to(user).order_by("sort_name"))
    states = operational_states(user, [site.name for site in sites], now)
    return SiteMap(
        [MapSite(site.name, site.title, states[site.name], site.latitude, site.longitude) for site in sites],
        _links(user, sites, now),
    )


def _links(user: AbstractBaseUser | AnonymousUser, sites: Sequence[Site], now: datetime) -> list[MapLink]:
    source = _with_links(Series.objects.visible_to(user).filter(enabled=True))
    rows = latest.series_columns(source, allowed_ages.COLUMNS)
    ages, group = allowed_ages.allowed_ages(rows), np.zeros(len(rows["series"]), dtype=np.int64)
    is_imported = ages == allowed_ages.NEVER_CURRENT
    states = series_states(source, rows["series"], group, now, is_imported=is_imported)
    is_failing = np.isin(states.state, BY_GRID) & ~stale_rows(states, ages, now)
    keys = np.array([site.pk for site in sites], dtype=np.int64)
    first, second, row = _pairs(source, states, keys)
    culprit = states.culprit[row]
    is_here = (culprit == 0) | (culprit == keys[first]) | (culprit == keys[second])
    count = max(len(sites), 1)
    links, position = np.unique(first * count + second, return_inverse=True)
    totals = np.bincount(position, minlength=len(links))
    failing = np.bincount(position[is_failing[row] & is_here], minlength=len(links))
    order = np.lexsort([links, -failing])[:MOST_LINKS]
    return [
        MapLink(sites[link // count].name, sites[link % count].name, total, failed)
        for link, total, failed in zip(
            links[order].tolist(), totals[order].tolist(), failing[order].tolist(), strict=True
        )
    ]


def _with_links(source: SeriesQuerySet) -> SeriesQuerySet:
    """Return those of *source* that may be at several sites, if these are few; else all."""
    with binary.cursor() as cursor:
        rows = cursor.execute(_AT_SEVERAL, [MOST_LISTED + 1], prepare=False).fetchall()
    return source.filter(pk__in=[key for (key,) in rows]) if len(rows) <= MOST_LISTED else source


def _pairs(
    source: SeriesQuerySet, states: SeriesStates, sites: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of sites of each series, as positions in *sites*, and its row in *states*."""
    bindings = latest.binding_columns(source)
    resources = np.array(list(Resource.objects.values_list("pk", "site_id")), dtype=np.int64).reshape(-1, 2)
    at = latest.positions_of(bindings["resource"], resources[:, 0])
    site = latest.take(latest.positions_of(resources[:, 1], sites), at, -1)
    row = latest.positions_of(bindings["series"], states.series)
    shown = (row >= 0) & (site >= 0)
    row, site = np.divmod(np.unique(row[shown] * len(sites) + site[shown]), max(len(sites), 1))
    sizes = np.bincount(row, minlength=len(states.series))
    pairs = []
    for distance in range(1, MOST_SITES_OF_A_LINK):  # the sites of a series are neighbours
        same = row[distance:] == row[:-distance]
        same &= sizes[row[distance:]] <= MOST_SITES_OF_A_LINK
        pairs.append((site[:-distance][same], site[distance:][same], row[distance:][same]))
    first, second, of = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return first, second, of
