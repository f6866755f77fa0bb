"""Failures: failed runs with their causes, and causes with their counts."""

from __future__ import annotations

import math
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from django.db.models import Prefetch
from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.analysis.attribution.attribute import recent
from monitor.analysis.attribution.culprits import PartKind
from monitor.analysis.outcomes.breakdown import BreakdownKind, break_down
from monitor.analysis.outcomes.by_hour import count_by_hour
from monitor.analysis.outcomes.counts import RANGES, FailureRange, count_failures, outcomes_in
from monitor.analysis.outcomes.repair_times import repair_times
from monitor.models import AttributedRun, Attribution, Run, Series
from monitor.models.failure_signature import Category
from monitor.models.run import WITH_SIGNATURE, State
from monitor.web.api.http.filters import SeriesFilter, WindowFilter, chosen
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_items, list_rows, show_item
from monitor.web.api.http.schemas import NameFilter

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["failures"])
RangeKey = Literal["24h", "7d", "30d", "90d"]


class FailureOut(Schema):
    """A run that failed, broke or timed out; *signature* is null until the run is classified."""

    run: uuid.UUID
    series: str
    slot: datetime
    state: State
    stage: str
    failed_resource: str
    reason: str
    signature: str | None

    @staticmethod
    def resolve_run(run: Run) -> uuid.UUID:
        return run.pk

    @staticmethod
    def resolve_series(run: Run) -> str:
        return run.series.name

    @staticmethod
    def resolve_signature(run: Run) -> str | None:
        return run.signature.name if run.signature else None


class FailureList(ListOut):
    failures: list[FailureOut]


class CauseOut(Schema):
    """The failures with one cause; *signature* is null for those that are not classified yet.

    *by_interval* counts failed runs in each interval of the range, oldest first.
    """

    signature: str | None
    title: str
    category: Category | None
    run_count: int
    series_count: int
    first_at: datetime
    latest_at: datetime
    by_interval: list[int]


class FailureCountsOut(Schema):
    """Success rates and causes. *raw_success_rate* is the share of judged runs that passed (null without
    runs); *adjusted_success_rate* leaves out *excused* failures, which do not count against a site or
    happened during planned maintenance. *mean_between_failures_seconds* is operating time per outage
    (*outages* that began after a passed run), and *mean_to_repair_seconds* the mean length of outages that
    ended (*repairs*), both of the days (UTC) that the range touches; null without any."""

    start: datetime
    interval_seconds: float
    passed: int
    failed: int
    excused: int
    raw_success_rate: float | None
    adjusted_success_rate: float | None
    outages: int
    repairs: int
    mean_between_failures_seconds: float | None
    mean_to_repair_seconds: float | None
    causes: list[CauseOut]


class BreakdownRowOut(Schema):
    """A series, site, path or stage; *name* is empty for failed runs that name no stage.

    *cause* is the signature of most failed runs, *cause_runs*; null if they are not classified yet. Times are
    null except for series, and as in `/failures/counts`.
    """

    name: str
    passed: int
    failed: int
    excused: int
    raw_success_rate: float | None
    adjusted_success_rate: float | None
    cause: str | None
    cause_runs: int
    mean_between_failures_seconds: float | None
    mean_to_repair_seconds: float | None


class BreakdownOut(Schema):
    """The *rows* with the lowest adjusted success rates, at most 100, and how many *more* there are."""

    rows: list[BreakdownRowOut]
    more: int


class HourCountOut(Schema):
    """The runs in an hour (UTC) of a weekday, 1 for Monday to 7, and how many of them failed."""

    weekday: int
    hour: int
    run_count: int
    failed: int


class HourCounts(Schema):
    """The hours of a week that have runs."""

    hours: list[HourCountOut]


class FailureQuery(Page, SeriesFilter, WindowFilter):
    """*start* and *end* bound the slot; *signature* is a name of `/failures/signatures`."""

    signature: NameFilter = ""
    category: Category | None = None


class RangeQuery(Sparse):
    range: RangeKey = "7d"
    site: NameFilter = ""


class BreakdownQuery(RangeQuery):
    by: BreakdownKind


@router.get(
    "/failures", response=FailureList, operation_id="list_failures", summary="List failed runs, newest first"
)
def list_failures(request: HttpRequest, query: Query[FailureQuery]) -> HttpResponse:
    """The site filter selects the runs of series that use the site."""
    lookups = chosen(signature__name=query.signature, signature__category=query.category)
    failed = Run.objects.visible_to(request.user).filter(state__in=WITH_SIGNATURE, **lookups)
    rows = query.within(query.of_series(failed), "slot").select_related("series", "signature")
    return list_rows(query, rows, FailureList, order=["-slot", "-id"])


@router.get(
    "/failures/counts",
    response=FailureCountsOut,
    operation_id="show_failure_counts",
    summary="Count failures by cause and time",
)
def show_failure_counts(request: HttpRequest, query: Query[RangeQuery]) -> HttpResponse:
    range_, now = chosen_range(query.range), timezone.now()
    outcomes = outcomes_in(range_, now, request.user, query.site)
    counts, times = count_failures(outcomes, range_, now), repair_times(outcomes)
    shown = FailureCountsOut(
        start=counts.starts[0],
        interval_seconds=range_.interval.total_seconds(),
        passed=counts.rates.passed,
        failed=counts.rates.failed,
        excused=counts.rates.excused,
        raw_success_rate=counts.rates.raw,
        adjusted_success_rate=counts.rates.adjusted,
        outages=times.outages,
        repairs=times.repairs,
        mean_between_failures_seconds=_seconds(times.between),
        mean_to_repair_seconds=_seconds(times.to_repair),
        causes=[
            CauseOut(
                signature=cause.signature.name if cause.signature else None,
                title=cause.signature.title if cause.signature else "Not classified yet",
                category=Category(cause.signature.category) if cause.signature else None,
                run_count=cause.runs,
                series_count=cause.series,
                first_at=cause.first,
                latest_at=cause.latest,
                by_interval=list(cause.by_interval),
            )
            for cause in counts.causes
        ],
    )
    return show_item(query, shown, FailureCountsOut)


class AttributionOut(Schema):
    """A part of the grid that was found to be at fault; *ended_at* is null as long as the results support it.

    *kind* is `source`, `destination`, `edge`, `compute`, `site` (in every role) or `reporter`; the name of an
    edge is `source>destination`. *probability* is that of the verdict; *failed* of *results* that used the
    part failed.
    """

    id: int
    kind: PartKind
    name: str
    probability: float
    failed: int
    results: int
    since: datetime
    latest_at: datetime
    decided_at: datetime
    ended_at: datetime | None
    runs: list[uuid.UUID]

    @staticmethod
    def resolve_results(row: Attribution) -> int:
        return row.total

    @staticmethod
    def resolve_runs(row: Attribution) -> list[uuid.UUID]:
        return [explained.run for explained in row.runs.all()]


class AttributionList(ListOut):
    attributions: list[AttributionOut]


class AttributionQuery(Page):
    range: RangeKey = "7d"
    site: NameFilter = ""


@router.get(
    "/failures/attributions",
    response=AttributionList,
    operation_id="list_attributions",
    summary="List the parts of the grid at fault",
)
def list_attributions(request: HttpRequest, query: Query[AttributionQuery]) -> HttpResponse:
    """Open ones first. *runs* are the failed runs that the verdict rests on, as far as you may see them."""
    visible = AttributedRun.objects.filter(series__in=Series.objects.visible_to(request.user))
    rows = Attribution.objects.visible_to(request.user).prefetch_related(
        Prefetch("runs", visible.order_by("slot", "pk"))
    )
    attributions = recent(rows, chosen_range(query.range).starts(timezone.now())[0], query.site)
    return list_items(query, list(attributions), AttributionList, key=_open_first)


@router.get(
    "/failures/breakdown",
    response=BreakdownOut,
    operation_id="show_failure_breakdown",
    summary="Break failures down, worst first",
)
def show_failure_breakdown(request: HttpRequest, query: Query[BreakdownQuery]) -> HttpResponse:
    """A failed run counts at the site where it failed, and on the paths of its series that begin or end
    there; a passed run at all sites, paths and stages of its series."""
    outcomes = outcomes_in(chosen_range(query.range), timezone.now(), request.user, query.site)
    breakdown = break_down(outcomes, query.by)
    shown = BreakdownOut(
        rows=[
            BreakdownRowOut(
                name=row.name,
                passed=row.rates.passed,
                failed=row.rates.failed,
                excused=row.rates.excused,
                raw_success_rate=row.rates.raw,
                adjusted_success_rate=row.rates.adjusted,
                cause=row.cause.name if row.cause else None,
                cause_runs=row.cause_runs,
                mean_between_failures_seconds=_seconds(row.times.between if row.times else None),
                mean_to_repair_seconds=_seconds(row.times.to_repair if row.times else None),
            )
            for row in breakdown.rows
        ],
        more=breakdown.more,
    )
    return show_item(query, shown, BreakdownOut)


@router.get(
    "/failures/by-hour",
    response=HourCounts,
    operation_id="show_failure_hours",
    summary="Count failures by weekday and hour",
)
def show_failure_hours(request: HttpRequest, query: Query[RangeQuery]) -> HttpResponse:
    """Hours without runs are left out."""
    outcomes = outcomes_in(chosen_range(query.range), timezone.now(), request.user, query.site)
    hours = [
        HourCountOut(weekday=weekday, hour=hour, run_count=count.runs, failed=count.failed)
        for weekday, day in enumerate(count_by_hour(outcomes), start=1)
        for hour, count in enumerate(day)
        if count.runs
    ]
    return show_item(query, HourCounts(hours=hours), HourCounts)


def _open_first(row: Attribution) -> tuple[float, ...]:
    ended = row.ended_at.timestamp() if row.ended_at else math.inf
    return -ended, -row.decided_at.timestamp(), -row.pk


def chosen_range(key: RangeKey) -> FailureRange:
    return RANGES[key]


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
