"""Very many series in a list: those of a site, a suite or a state, the worst first, a page at a time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from django.db.models.functions import Collate

from monitor.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES, Fault, fault
from monitor.models import Resource, Series, Suite
from monitor.models.run import DID_NOT_PASS, State
from monitor.overview import latest
from monitor.overview.grid import Cell
from monitor.overview.series_summary import Last

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from numpy.typing import NDArray

    from monitor.models.series import SeriesQuerySet

LINES_A_PAGE = 50
NOT_WORKING = "not-working"  # any state that did not pass
WORST, BY_NAME, OLDEST = "worst", "name", "oldest"
ORDERS = (WORST, BY_NAME, OLDEST)

_WORST_FIRST = [*GRID_FAILURES, *MONITOR_FAILURES]


@dataclass(frozen=True)
class Choice:
    """Which series are meant, of all that somebody may see; empty: all.

    *state* is one of them, or ``NOT_WORKING``.
    """

    site: str = ""
    suite: str = ""
    state: str = ""


@dataclass(frozen=True)
class Line:
    """One series. *site* is where it failed, if that is known; *means* are of the last 24 hours, in seconds,
    oldest first, NaN for none."""

    name: str
    probe: str
    suite: str
    enabled: bool
    cell: Cell
    site: str
    means: tuple[float, ...]

    @property
    def extremes(self) -> tuple[float, float] | None:
        """The least and the greatest of the *means*; None without any."""
        there = [mean for mean in self.means if not math.isnan(mean)]
        return (min(there), max(there)) if there else None


@dataclass(frozen=True)
class Listing:
    """A page of *lines*, of so many *pages* and *series*."""

    lines: Sequence[Line]
    series: int
    page: int
    pages: int
    digest: str


def listing(
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    choice: Choice,
    *,
    order: str = WORST,
    page: int = 1,
) -> Listing:
    """What *user* may see at *now* and is meant by *choice*."""
    ordered = _ordered(_chosen(user, choice), choice, order)
    pages = max(1, -(-len(ordered) // LINES_A_PAGE))
    page = min(max(page, 1), pages)
    lines = _lines(ordered[(page - 1) * LINES_A_PAGE : page * LINES_A_PAGE].tolist(), choice.site, now)
    told = (lines, len(ordered), page, pages)
    return Listing(
        lines=lines,
        series=len(ordered),
        page=page,
        pages=pages,
        digest=hashlib.blake2s(repr(told).encode(), digest_size=8).hexdigest(),
    )


def after(user: AbstractBaseUser | AnonymousUser, choice: Choice, *, name: str, at_most: int) -> list[int]:
    """The keys of those that are meant by *choice* and whose names come after *name*, by name, *at_most* so
    many. Names are in the order of their characters, whatever language the database sorts by."""
    by_name = _chosen(user, choice).alias(written=Collate("name", "C")).filter(written__gt=name)
    if choice.state:
        return list(_ordered(by_name, choice, BY_NAME)[:at_most].tolist())
    those = Series.objects.filter(pk__in=by_name.order_by().values("pk")).order_by(Collate("name", "C"))
    return list(those.values_list("pk", flat=True)[:at_most])


def _chosen(user: AbstractBaseUser | AnonymousUser, choice: Choice) -> SeriesQuerySet:
    """Those of a site and a suite. The suites are asked for first: that spares looking them up for each."""
    suites = Suite.objects.visible_to(user).filter(**{"name": choice.suite} if choice.suite else {})
    chosen = Series.objects.filter(suite__in=list(suites.values_list("pk", flat=True)))
    return chosen.filter(bindings__resource__site__name=choice.site) if choice.site else chosen


def _ordered(chosen: SeriesQuerySet, choice: Choice, order: str) -> NDArray[np.int64]:
    """The keys of those of *chosen* that are in the state that is meant."""
    named = latest.keys(chosen, {"name": ("name", "name")})
    ended = {"state": ("letter", "state"), "at": ("time", "coalesce(ended_at, slot, '-infinity')")}
    # All rows are read as quickly as most of them.
    found = latest.read(chosen if choice.site else Series.objects.all(), named["series"], ended)
    if choice.state:
        wanted = DID_NOT_PASS if choice.state == NOT_WORKING else [choice.state]
        kept = np.flatnonzero(np.isin(found["state"], [one[0].encode() for one in wanted]))
    else:
        kept = np.arange(len(named["series"]))
    names = named["name"][kept].astype(str)
    severity = np.full(len(kept), len(_WORST_FIRST))
    for rank, one in enumerate(_WORST_FIRST):
        severity[found["state"][kept] == one[0].encode()] = rank
    first = {WORST: severity, BY_NAME: np.zeros(len(kept)), OLDEST: found["at"][kept]}[order]
    return np.asarray(named["series"][kept][np.lexsort([names, first])])


def _lines(keys: Sequence[int], site: str, now: datetime) -> list[Line]:
    series = Series.objects.filter(pk__in=keys)
    rows = latest.latest(series, now)
    means = dict(zip(rows.series.tolist(), rows.means.tolist(), strict=True))
    newest = latest.recent(series)
    runs = latest.last_runs(newest)
    there = {one.pk: one for one in series.select_related("suite")}
    blamed = {name for one in newest.values() for _, name in one.trend if name}
    sites = dict(Resource.objects.filter(name__in=blamed).values_list("name", "site__name"))
    return [
        Line(
            name=there[key].name,
            probe=there[key].probe,
            suite=there[key].suite.name,
            enabled=there[key].enabled,
            cell=_cell(
                there[key].name,
                Last.of(runs[key]) if key in runs else None,
                newest.get(key, latest.NOTHING_YET).trend,
                sites,
                site,
            ),
            site=sites.get(runs[key].failed_resource, "") if key in runs else "",
            means=tuple(means.get(key, ())),
        )
        for key in keys
        if key in there
    ]


def _cell(
    name: str, last: Last | None, trend: Sequence[tuple[State, str]], sites: Mapping[str, str], site: str
) -> Cell:
    """As it is seen from *site*; from where it failed if that is empty."""

    def whose(state: str, resource: str) -> Fault:
        failed_site = sites.get(resource, "")
        return fault(state, failed_site=failed_site, site=site or failed_site)

    return Cell(
        series=name,
        last=last,
        whose=whose(last.state, last.failed_resource) if last else Fault.NONE,
        trend=tuple((str(state), whose(state, resource)) for state, resource in trend),
    )
