"""Details of a page of series: last run, trend, totals, forecast, current run and alerts.

The number of queries does not depend on the number of series.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, Subquery, Value
from django.db.models.functions import JSONObject

from monitor.analysis.forecasts.defaults import LEVEL
from monitor.depot.samples.read import newest_values
from monitor.depot.series.segments import current_metrics
from monitor.depot.series.staleness import Staleness, allowed_age, freshness
from monitor.models import Alert, ForecastState, Hold, Reporter, Resource, Run, Series
from monitor.models.run import State
from monitor.models.series import IMPORTED, SeriesQuerySet
from monitor.runs.ledger.attribution import Fault, fault, outcome_label
from monitor.runs.ledger.holds import covering_holds
from monitor.web.status.latest import newest_runs, recent_runs, skipped_runs
from reporters.remote.policy.site_policy import PREFIX as POLICY_PREFIX

SPARKLINE_VALUES = 30
HEADLINE_METRIC = "total.seconds"


@dataclass(frozen=True)
class HeadlineForecast:
    """The newest forecast of the total of a series, in seconds."""

    median: float
    lower: float
    upper: float
    level: float
    n: int


@dataclass(frozen=True)
class CurrentRun:
    """A run that is claimed or running."""

    run: uuid.UUID
    state: str
    stage: str
    since: datetime | None


@dataclass(frozen=True)
class LastRun:
    """The newest ended run of a series that was not skipped, or its newest slot that was."""

    run: uuid.UUID
    state: str
    stage: str
    reason: str
    failed_resource: str
    at: datetime

    @classmethod
    def of(cls, run: Run) -> LastRun:
        return cls(run.pk, run.state, run.stage, run.reason, run.failed_resource, run.ended_at or run.slot)


@dataclass(frozen=True)
class SeriesRuns:
    """The runs of a series.

    Attributes:
        last: the newest run that was not skipped.
        skipped: the newest slot, if it was skipped.
        trend: a pair (state, failed resource) for each of the newest runs, oldest first.
        freshness: that of *last*.
    """

    name: str
    last: LastRun | None
    skipped: LastRun | None
    trend: Sequence[tuple[str, str]]
    freshness: Staleness


@dataclass(frozen=True)
class SeriesCell:
    """One series as seen from one site.

    Attributes:
        last: the newest run; if every slot was skipped, the newest slot.
        skipped: why the newest slot was skipped, if no run has ended yet or the site's policy skipped it.
        trend: a pair (state, fault) for each of the newest runs, oldest first.
        freshness: that of the newest run that was not skipped.
    """

    series: str
    last: LastRun | None
    skipped: str
    fault: Fault
    trend: tuple[tuple[str, Fault], ...]
    freshness: Staleness

    @property
    def words(self) -> str:
        return outcome_label(self.last.state, self.fault) if self.last else "no run yet"

    @property
    def is_executed(self) -> bool:
        """Whether a run was executed: its age says how fresh the cell is."""
        return self.last is not None and self.freshness != Staleness.NEVER_SEEN


@dataclass(frozen=True)
class SeriesDetails:
    """The details of a series that the head of its column shows.

    Attributes:
        totals: the newest totals of the current segment in seconds, oldest first.
        held: the reason of a hold or maintenance that covers the series; empty if the series is not held.
        alerts: the number of open alerts.
        seen: its last runs, each failure as seen from the site where it happened; None until it is known.
        has_no_agent: whether its reporter is remote and has not got an assignment yet; it has no slots then.
    """

    key: int
    name: str
    probe: str
    enabled: bool
    totals: Sequence[float]
    outlook: HeadlineForecast | None
    current: CurrentRun | None
    next_slot: datetime | None
    held: str
    alerts: int
    has_no_agent: bool
    seen: SeriesCell | None = None

    @property
    def is_imported(self) -> bool:
        return self.probe.startswith(IMPORTED)

    @property
    def deviation(self) -> float | None:
        """The newest total relative to the forecast of the next, minus 1; None without a forecast."""
        if not self.totals or self.outlook is None or self.outlook.median <= 0:
            return None
        return self.totals[-1] / self.outlook.median - 1


def series_runs(series: Iterable[Series], now: datetime) -> dict[int, SeriesRuns]:
    """Return the runs of each of *series* by primary key; series without an ended run are absent.

    *series* are read with their leaders, whose schedules they have.
    """
    scheduled = {each.pk: each for each in series}
    recent = recent_runs(scheduled)
    newest, skipped = newest_runs(recent), skipped_runs(recent)
    return {
        key: SeriesRuns(
            each.name,
            LastRun.of(newest[key]) if key in newest else None,
            LastRun.of(skipped[key]) if key in skipped else None,
            each.trend,
            _freshness(scheduled[key], newest.get(key), now),
        )
        for key, each in recent.items()
    }


def _freshness(series: Series, last: Run | None, now: datetime) -> Staleness:
    last_end = (last.ended_at or last.slot) if last else None
    allowed = allowed_age(series)
    return freshness(last_end, now, allowed_age_seconds=allowed, is_imported=series.is_imported)


def sites_of_failures(runs: Mapping[int, SeriesRuns]) -> dict[str, str]:
    """Return the site of each resource at which one of *runs* failed, by name of the resource."""
    resources = {resource for each in runs.values() for _, resource in each.trend if resource}
    resources |= {each.last.failed_resource for each in runs.values() if each.last}
    resources.discard("")
    return Resource.objects.sites_by_name(resources)


def cell_at(name: str, runs: SeriesRuns | None, site: str, sites: Mapping[str, str]) -> SeriesCell:
    """Return the series *name* as seen from *site*.

    *sites* has the site of each failed resource. If *site* is empty, each failure is seen from the site where
    it happened.
    """

    def fault_of(state: str, resource: str) -> Fault:
        failed_site = sites.get(resource, "")
        return fault(state, failed_site=failed_site, site=site or failed_site)

    last, trend = (runs.last or runs.skipped, runs.trend) if runs else (None, ())
    return SeriesCell(
        series=name,
        last=last,
        skipped=_skip_reason(runs) if runs else "",
        fault=fault_of(last.state, last.failed_resource) if last else Fault.NONE,
        trend=tuple((str(state), fault_of(state, resource)) for state, resource in trend),
        freshness=runs.freshness if runs else Staleness.NEVER_SEEN,
    )


def _skip_reason(runs: SeriesRuns) -> str:
    reason = runs.skipped.reason if runs.skipped else ""
    if reason.startswith(POLICY_PREFIX):
        return f"now skipped, site {reason}" if runs.last else f"site {reason}"
    return "" if runs.last else reason


def cells_by_site(
    name: str, runs: SeriesRuns | None, sites: Sequence[str], failed_sites: Mapping[str, str]
) -> dict[str, SeriesCell]:
    """Return the series *name* as seen from each of *sites*.

    Sites at which none of the runs failed share one cell.
    """
    failures = {failed_sites.get(resource, "") for _, resource in (runs.trend if runs else ())}
    without_failure: SeriesCell | None = None
    cells = {}
    for site in sites:
        if site in failures:
            cells[site] = cell_at(name, runs, site, failed_sites)
        else:
            without_failure = without_failure or cell_at(name, runs, site, failed_sites)
            cells[site] = without_failure
    return cells


def series_details(visible: SeriesQuerySet, now: datetime, holds: Sequence[Hold]) -> list[SeriesDetails]:
    """Return the details of each series in *visible*, sorted by name; *holds* are the holds in force."""
    rows = list(_series(visible))
    headlines = {row["segment__series__name"]: row for row in _headlines(visible)}
    current = _current_runs(visible)
    next_slots = _next_slots(visible, now)
    held = covering_holds((row["pk"] for row in rows), holds)
    return [
        SeriesDetails(
            key=row["pk"],
            name=row["name"],
            probe=row["probe"],
            enabled=row["enabled"],
            totals=headlines.get(row["name"], {}).get("newest", [])[::-1],
            outlook=_forecast(headlines.get(row["name"], {}).get("outlook")),
            current=current.get(row["name"]),
            next_slot=next_slots.get(row["name"]),
            held=held[row["pk"]].reason if row["pk"] in held else "",
            alerts=row["open_alerts"] or 0,
            has_no_agent=row["has_no_agent"],
        )
        for row in rows
    ]


def _series(visible: SeriesQuerySet) -> Any:
    alerts = Alert.objects.open().filter(series=OuterRef("pk")).order_by().values("series")
    return Series.objects.filter(pk__in=visible.values("pk")).values(
        "pk",
        "name",
        "probe",
        "enabled",
        has_no_agent=Exists(Reporter.objects.unassigned().filter(pk=OuterRef("reporter"))),
        open_alerts=Subquery(alerts.annotate(count=Count("pk")).values("count")),
    )


def _headlines(visible: SeriesQuerySet) -> Any:
    fields = {name: f"forecast__{name}" for name in ("median", "lower", "upper")}
    numbers = JSONObject(**fields, n="n", level=Value(LEVEL))
    newest = ForecastState.objects.filter(metric=OuterRef("pk"), forecast__mean__isnull=False)
    return (
        current_metrics(visible)
        .filter(name=HEADLINE_METRIC)
        .values(
            "segment__series__name",
            newest=newest_values(SPARKLINE_VALUES),
            outlook=Subquery(newest.values(numbers=numbers)),
        )
    )


def _forecast(numbers: dict[str, Any] | None) -> HeadlineForecast | None:
    return HeadlineForecast(**numbers) if numbers else None


def _current_runs(visible: SeriesQuerySet) -> dict[str, CurrentRun]:
    runs = Run.objects.in_flight().filter(series__in=visible).select_related("series")
    return {run.series.name: CurrentRun(run.pk, run.state, run.stage, run.started_at) for run in runs}


def _next_slots(visible: SeriesQuerySet, now: datetime) -> dict[str, datetime]:
    expected = Run.objects.filter(
        series__in=visible, state=State.EXPECTED, slot__gt=now, series__enabled=True
    )
    return dict(expected.order_by().values_list("series__name").annotate(Min("slot")))
