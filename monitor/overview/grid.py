"""Every series at every site at a glance: what became of the last runs, and whose fault it is.

The number of queries does not depend on how many series or sites there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Count

from monitor.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES, Fault, fault, outcome_label
from monitor.ledger.maintenance import ShownWindow, open_for_user
from monitor.models import Binding, Hold, Run, Series
from monitor.models.hold import HoldKind
from monitor.models.run import ENDED
from monitor.models.series import SeriesQuerySet
from monitor.overview.series_summary import Column, Last, columns
from monitor.overview.summary import LAST_HOUR, Glance, Trouble, in_a_row, work_at

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_SERIES = 40  # of a page with a column each
MOST_CELLS = 2000

Bound = tuple[str, str, str, str]  # series, resource, site, the site's title


@dataclass(frozen=True)
class Cell:
    """One series seen from one site; *trend* is (state, whose fault) oldest first."""

    series: str
    last: Last | None
    whose: Fault
    trend: tuple[tuple[str, Fault], ...]

    @property
    def words(self) -> str:
        return outcome_label(self.last.state, self.whose) if self.last else "no run yet"


@dataclass(frozen=True)
class Row:
    """One site; a cell is None where a series does not use it. *held* says by whom and why, if it is.

    *work* says what planned work goes on there, if any.
    """

    site: str
    title: str
    cells: Sequence[Cell | None]
    held: str = ""
    work: str = ""

    @property
    def failing(self) -> int:
        """How many series failed here the last time."""
        return sum(1 for cell in self.cells if cell and cell.whose == Fault.HERE)


@dataclass(frozen=True)
class Overview(Glance):
    """The page's content, of few series."""

    columns: Sequence[Column]
    rows: Sequence[Row]

    @property
    def alerts(self) -> int:
        """How many are open."""
        return sum(column.alerts for column in self.columns)


def is_small(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether what *user* may see fits on a page, cell by cell."""
    visible = Series.objects.visible_to(user).order_by()
    bindings = Binding.objects.filter(series__in=visible).order_by()
    return (
        visible[: MOST_SERIES + 1].count() <= MOST_SERIES and bindings[: MOST_CELLS + 1].count() <= MOST_CELLS
    )


def overview(user: AbstractBaseUser | AnonymousUser, now: datetime) -> Overview:
    """What *user* may see, at *now*."""
    visible = Series.objects.visible_to(user)
    holds = list(Hold.objects.at(now))
    found = columns(visible, now, holds)
    bindings: list[Bound] = list(
        Binding.objects.filter(series__in=visible).values_list(
            "series__name", "resource__name", "resource__site__name", "resource__site__title"
        )
    )
    outcomes = _last_hour(visible, now)
    sites = {resource: site for _, resource, site, _ in bindings}
    held = {one.name: one.reason for one in holds if one.kind == HoldKind.SITE}
    works = open_for_user(user, now)
    at = _sites_by_series(bindings)
    troubles = _troubles(found, sites)
    seen = (found, bindings, outcomes, held, [(one.where, one.words) for one in works])
    return Overview(
        columns=_in_maintenance(found, at, works),
        rows=_rows(found, at, bindings, sites, held, works),
        troubles=troubles,
        troubled=len(troubles),
        works=works,
        outcomes=outcomes,
        digest=hashlib.blake2s(repr(seen).encode(), digest_size=8).hexdigest(),
    )


def _last_hour(visible: SeriesQuerySet, now: datetime) -> dict[str, int]:
    ended = Run.objects.filter(series__in=visible, state__in=ENDED, slot__gt=now - LAST_HOUR, slot__lte=now)
    counted = ended.order_by().values_list("state").annotate(Count("pk"))
    return dict(sorted(counted))


def _in_maintenance(
    found: Sequence[Column], at: Mapping[str, Collection[str]], works: Sequence[ShownWindow]
) -> list[Column]:
    """*found*, those series held for which work goes on at one of their sites; they are *at*, by series."""
    said = {series: work_at(sites, works) for series, sites in at.items()}
    return [replace(one, held=one.held or said.get(one.name, "")) for one in found]


def _sites_by_series(bindings: Sequence[Bound]) -> dict[str, set[str]]:
    at: dict[str, set[str]] = {}
    for series, _, site, _ in bindings:
        at.setdefault(series, set()).add(site)
    return at


def _rows(
    found: Sequence[Column],
    at: Mapping[str, Collection[str]],
    bindings: Sequence[Bound],
    sites: Mapping[str, str],
    held: Mapping[str, str],
    works: Sequence[ShownWindow],
) -> list[Row]:
    titles = {site: title for _, _, site, title in bindings}
    cells = [_cells(column, at.get(column.name, set()), sites) for column in found]
    return [
        Row(site, title, [seen.get(site) for seen in cells], held.get(site, ""), work_at([site], works))
        for site, title in sorted(titles.items())
    ]


def _cells(column: Column, at: Iterable[str], sites: Mapping[str, str]) -> dict[str, Cell]:
    """The series as every site in *at* sees it. Those that are to blame for nothing all see the same."""
    blamed = {sites.get(tick.failed_resource, "") for tick in column.trend}
    unblamed = _cell(column, "", sites)
    return {site: _cell(column, site, sites) if site in blamed else unblamed for site in at}


def _cell(column: Column, site: str, sites: Mapping[str, str]) -> Cell:
    def whose(state: str, failed_resource: str) -> Fault:
        return fault(state, failed_site=sites.get(failed_resource, ""), site=site)

    last = column.last
    return Cell(
        series=column.name,
        last=last,
        whose=whose(last.state, last.failed_resource) if last else Fault.NONE,
        trend=tuple((tick.state, whose(tick.state, tick.failed_resource)) for tick in column.trend),
    )


def _troubles(columns: Sequence[Column], sites: Mapping[str, str]) -> list[Trouble]:
    """What does not work now: the grid's first, by site; then ours."""
    found = [
        Trouble(
            series=column.name,
            site=sites.get(column.last.failed_resource),
            ours=column.last.state in MONITOR_FAILURES,
            last=column.last,
            in_a_row=in_a_row([tick.state for tick in column.trend]),
        )
        for column in columns
        if column.last and column.last.state in (*GRID_FAILURES, *MONITOR_FAILURES)
    ]
    return sorted(found, key=lambda t: (t.ours, t.site is None, t.site or "", t.series))
