"""What a page of the overview shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitor.web.matrix.cell import MatrixCell
from monitor.web.matrix.summary import Summary
from monitor.web.status.series_details import SeriesDetails


@dataclass(frozen=True)
class SiteRow:
    """One site of the overview.

    Attributes:
        cells: the cells by column; None if no series of the column uses the site.
        failing: the number of series that failed at this site.
        held: the reason of a hold; empty if the site is not held.
        maintenance: the notice of an open maintenance window; empty if no window is open.
        availability: the share of the known time of this month (UTC) in which it was up; None if unknown.
    """

    site: str
    title: str
    cells: Sequence[MatrixCell | None]
    failing: int
    held: str
    maintenance: str
    availability: float | None


@dataclass(frozen=True)
class Overview(Summary):
    """The content of one page of the overview.

    Attributes:
        columns: the names of series, suites or probes.
        are_suites: whether the columns are suites.
        series: the details of the series, if each column is one series.
        site_names: the names of the sites of all pages.
        rows: the sites of this page.
        site_count: the number of sites of all pages.
    """

    columns: Sequence[str]
    are_suites: bool
    series: Sequence[SeriesDetails]
    series_count: int
    site_names: Sequence[str]
    rows: Sequence[SiteRow]
    site_count: int
    page: int
    pages: int
