"""The overview: sites by columns, for any number of series.

If there are few enough series for a page, each column is a series, with details. Otherwise each column is a
suite or, in the overview of one suite, a probe. The cells are counted from a few numbers per series, in
arrays. The number of queries does not depend on the number of series or sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import probes
from monitor.analysis.availability.report import present_months
from monitor.core.db.timestamps import moment
from monitor.models import Binding, Hold, Series, Suite
from monitor.models.hold import HoldKind
from monitor.runs.maintenance.windows import ShownWindow, open_for_user
from monitor.web.matrix.cell import MatrixCell
from monitor.web.matrix.cell_figures import CellFigures, cell_figures
from monitor.web.matrix.content import Overview, SiteRow
from monitor.web.matrix.counts import (
    MatrixColumns,
    MatrixCounts,
    ShownSeries,
    counted,
    shown_series,
    totals_of_states,
    with_stored,
)
from monitor.web.matrix.summary import (
    failing_series,
    is_any_of,
    maintenance_at,
)
from monitor.web.status import latest
from monitor.web.status.allowed_ages import COLUMNS as AGE_COLUMNS
from monitor.web.status.allowed_ages import allowed_ages
from monitor.web.status.column_arrays import NEVER
from monitor.web.status.incidents import IncidentsOf, current_incidents
from monitor.web.status.series_details import (
    SeriesCell,
    SeriesDetails,
    cell_at,
    cells_by_site,
    series_details,
    series_runs,
    sites_of_failures,
)
from monitor.web.status.series_states import (
    ELSEWHERE,
    HERE,
    MONITORING,
    SOMEWHERE,
    series_states,
)
from monitor.web.status.standings import (
    GroupedBy,
    outdated_series,
    stored_counts,
    stored_failing,
    stored_outcomes,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


MOST_SERIES = 40  # for more series than this, there is no column for each
MOST_BINDINGS = 2000
SITES_A_PAGE = 30
WORST, BY_NAME = "worst", "name"
ORDERS = (WORST, BY_NAME)


def has_column_per_series(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether the series that *user* may see are few enough for a column each."""
    visible = Series.objects.visible_to(user).order_by()
    bindings = Binding.objects.filter(series__in=visible).order_by()
    return (
        visible[: MOST_SERIES + 1].count() <= MOST_SERIES
        and bindings[: MOST_BINDINGS + 1].count() <= MOST_BINDINGS
    )


def overview_of_series(
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    *,
    order: str = WORST,
    incidents_of: IncidentsOf = current_incidents,
) -> Overview:
    """Return the overview with a column for each series that *user* may see, and all sites on one page.

    *incidents_of* returns its incidents, as ``current_incidents`` does.
    """
    holds = list(Hold.objects.at(now))
    details = series_details(Series.objects.visible_to(user), now, holds)
    details.sort(key=lambda detail: detail.is_imported)  # history is right of what runs
    keys = [detail.key for detail in details]
    visible = Series.objects.filter(pk__in=keys)
    columns = MatrixColumns(
        names=[detail.name for detail in details],
        source=visible,
        series=np.array(keys, dtype=np.int64),
        group=np.arange(len(keys)),
        details=details,
        runs=series_runs(visible.select_related("leader"), now),
    )
    return _overview(columns, user, now, holds, incidents_of, order=order, sites_a_page=None)


def overview_of_groups(
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    *,
    suite: str = "",
    order: str = WORST,
    page: int = 1,
    incidents_of: IncidentsOf = current_incidents,
) -> Overview:
    """Return the overview with a column per suite that *user* may see.

    If *suite* names a suite, only this suite is shown, with a column per probe. *page* counts from 1.
    *incidents_of* returns its incidents, as ``current_incidents`` does.
    """
    suites = Suite.objects.visible_to(user).filter(**{"name": suite} if suite else {}).order_by("sort_name")
    names = dict(suites.values_list("pk", "name"))
    columns = _columns_of_suites(names, now) if len(names) > 1 else _columns_of_probes(names, now)
    holds = list(Hold.objects.at(now))
    return _overview(
        columns, user, now, holds, incidents_of, order=order, page=page, sites_a_page=SITES_A_PAGE
    )


def _columns_of_suites(suites: Mapping[int, str], now: datetime) -> MatrixColumns:
    grouped = GroupedBy(list(suites))
    return _grouped_columns(grouped, list(suites.values()), now, are_suites=True)


def _columns_of_probes(suites: Mapping[int, str], now: datetime) -> MatrixColumns:
    installed = sorted(probes.names())
    return _grouped_columns(GroupedBy(list(suites), installed), [*installed, "others"], now)


def _grouped_columns(
    grouped: GroupedBy, names: Sequence[str], now: datetime, *, are_suites: bool = False
) -> MatrixColumns:
    """Return the columns with the series whose stored counts are not those of *now*, or with all series."""
    outdated = outdated_series(now)
    is_stored = len(outdated) <= latest.MOST_LISTED
    # Reading all series and states is as fast as selecting most of them.
    source = Series.objects.filter(pk__in=outdated) if is_stored else Series.objects.all()
    with_leaders = source | Series.objects.filter(followers__in=outdated) if is_stored else source
    read = {"group": grouped.expression(), "suite": ("integer", "suite_id"), **AGE_COLUMNS}
    rows = latest.series_columns(with_leaders, read)
    group = grouped.column(rows["group"])
    is_visible = latest.positions_of(rows["suite"], np.array(grouped.suites, dtype=np.int64)) >= 0
    if is_stored:
        is_visible &= np.isin(rows["series"], np.array(outdated, dtype=np.int64))
    return MatrixColumns(
        names,
        source,
        rows["series"][is_visible],
        group[is_visible],
        are_suites=are_suites,
        allowed_age=allowed_ages(rows)[is_visible],
        stored=replace(grouped, without=outdated) if is_stored else None,
    )


def _overview(
    columns: MatrixColumns,
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    holds: Sequence[Hold],
    incidents_of: IncidentsOf,
    *,
    order: str,
    page: int = 1,
    sites_a_page: int | None,
) -> Overview:
    is_imported = columns.is_imported
    states = series_states(columns.source, columns.series, columns.group, now, is_imported=is_imported)
    is_stale = columns.is_stale(states, now)
    counts, totals = counted(states, columns, is_stale), totals_of_states(states, is_stale, now)
    failing = states.failing()
    if columns.stored:
        stored = stored_counts(columns.stored)
        counts = with_stored(counts, stored)
        totals = totals.plus(stored, stored_outcomes(columns.stored, now))
        failing = failing.joined(stored_failing(columns.stored))
    used = np.flatnonzero(counts.by_standing.sum(axis=(1, 2)))
    ordered = used[_order(counts.by_standing[used].sum(axis=1), order)]
    page_size = sites_a_page or max(len(ordered), 1)
    pages = max(1, -(-len(ordered) // page_size))
    page = min(max(page, 1), pages)
    maintenance, incidents = open_for_user(user, now), incidents_of(user, now, failing.series.tolist())
    shown_columns = range(len(columns.names)) if columns.details else _used_columns(counts)
    shown_sites = ordered[(page - 1) * page_size : page * page_size]
    shown = shown_series(counts, states, columns, shown_sites)
    figures = {} if columns.details else _figures(shown, len(columns.names), now)
    rows = _rows(counts, shown, shown_sites, columns, shown_columns, figures, maintenance, holds, now)
    return Overview(
        incidents=incidents,
        failing=failing_series(failing, counts.site_names, columns.runs, now, but=incidents.affected),
        failing_count=len(failing.series),
        failing_alone_count=int((~is_any_of(failing.series, incidents.affected)).sum()),
        maintenance=maintenance,
        outcomes=totals.outcomes,
        stale_count=totals.stale,
        current_count=totals.current,
        columns=[columns.names[column] for column in shown_columns],
        are_suites=columns.are_suites,
        series=_shown_details(columns, rows, maintenance),
        series_count=totals.series,
        site_names=[counts.sites[at].name for at in used.tolist()],
        rows=rows,
        site_count=len(ordered),
        page=page,
        pages=pages,
    )


def _used_columns(counts: MatrixCounts) -> list[int]:
    used: list[int] = np.flatnonzero(counts.by_standing.sum(axis=(0, 2))).tolist()
    return used


def _order(counts: NDArray[np.int64], order: str) -> NDArray[np.int64]:
    """Return the positions of sites in the chosen *order*.

    The axes of *counts* are the sites, sorted by name, and the standing.
    """
    if order == BY_NAME:
        return np.arange(len(counts))
    return np.lexsort([-counts[:, standing] for standing in (ELSEWHERE, MONITORING, SOMEWHERE, HERE)])


def _rows(
    counts: MatrixCounts,
    shown: ShownSeries,
    shown_sites: NDArray[np.int64],
    columns: MatrixColumns,
    shown_columns: Sequence[int],
    figures: Mapping[tuple[int, int], CellFigures],
    maintenance: Sequence[ShownWindow],
    holds: Sequence[Hold],
    now: datetime,
) -> list[SiteRow]:
    held = {hold.name: hold.reason for hold in holds if hold.kind == HoldKind.SITE}
    series_cells = _series_cells(counts, columns)
    newest_ends = shown.newest(len(counts.sites), len(columns.names))
    months = present_months([counts.sites[at].pk for at in shown_sites.tolist()], now)
    rows = []
    for at in shown_sites.tolist():
        site = counts.sites[at]
        by_column, newest = counts.by_standing[at].tolist(), newest_ends[at].tolist()
        cells = [
            _cell(
                by_column[column],
                newest[column],
                series_cells[column].get(site.name) if series_cells else None,
                figures.get((at, column)),
            )
            for column in shown_columns
        ]
        failing = int(counts.by_standing[at, :, HERE].sum())
        window = maintenance_at([site.name], maintenance)
        month = months.get(site.pk)
        available = month.availability if month else None
        rows.append(
            SiteRow(site.name, site.title, cells, failing, held.get(site.name, ""), window, available)
        )
    return rows


def _cell(
    counts: Sequence[int], newest: int, series: SeriesCell | None, figures: CellFigures | None
) -> MatrixCell | None:
    if not any(counts):
        return None
    return MatrixCell(tuple(counts), None if newest == NEVER else moment(newest), series, figures)


def _figures(shown: ShownSeries, groups: int, now: datetime) -> dict[tuple[int, int], CellFigures]:
    """Return the figures of the cells of *shown*, by the positions of site and column."""
    by_number = cell_figures(shown.series, shown.ended_at, shown.site * groups + shown.group, now)
    return {divmod(number, groups): figures for number, figures in by_number.items()}


def _series_cells(counts: MatrixCounts, columns: MatrixColumns) -> list[dict[str, SeriesCell]]:
    """Return, for each column, its cells by site; empty unless the columns are single series."""
    if not columns.details:
        return []
    failed_sites = sites_of_failures(columns.runs)
    is_bound = counts.by_standing.sum(axis=2) > 0
    return [
        cells_by_site(
            detail.name,
            columns.runs.get(detail.key),
            [counts.sites[at].name for at in np.flatnonzero(is_bound[:, column]).tolist()],
            failed_sites,
        )
        for column, detail in enumerate(columns.details)
    ]


def _shown_details(
    columns: MatrixColumns, rows: Sequence[SiteRow], maintenance: Sequence[ShownWindow]
) -> list[SeriesDetails]:
    """Return the details of the series of *columns*, with their last runs.

    For series at whose sites maintenance is in progress, ``held`` has the notice.
    """
    failed_sites = sites_of_failures(columns.runs) if columns.details else {}
    return [
        replace(
            detail,
            held=detail.held or maintenance_at([row.site for row in rows if row.cells[column]], maintenance),
            seen=cell_at(detail.name, columns.runs.get(detail.key), "", failed_sites),
        )
        for column, detail in enumerate(columns.details)
    ]
