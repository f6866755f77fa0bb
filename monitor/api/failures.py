"""Failures: failed runs with their causes, and causes with their counts."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from django.db.models import Prefetch
from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.api.http.problems import Refused
from monitor.failures.attribute import recent
from monitor.failures.attribution import PartKind
from monitor.failures.breakdown import BreakdownKind, break_down
from monitor.failures.by_hour import count_by_hour
from monitor.failures.counts import RANGES, FailureRange, count_failures, judged_runs, runs_at_site
from monitor.failures.repair_times import repair_times
from monitor.models import AttributedRun, Attribution, Run, Series
from monitor.models.failure_signature import Category
from monitor.models.run import WITH_SIGNATURE

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["failures"])
RangeKey = Literal["24h", "7d", "30d", "90d"]


class FailureOut(Schema):
    """A run that failed, broke or timed out; *signature* is null until the run is classified."""

    run: uuid.UUID
    series: str
    slot: datetime
    state: str
    stage: str
    resource: str
    reason: str
    signature: str | None

    @staticmethod
    def resolve_run(run: Run) -> uuid.UUID:
        return run.pk

    @staticmethod
    def resolve_series(run: Run) -> str:
        return run.series.name

    @staticmethod
    def resolve_resource(run: Run) -> str:
        return run.failed_resource

    @staticmethod
    def resolve_signature(run: Run) -> str | None:
        return run.signature.name if run.signature else None


class CauseOut(Schema):
    """The failures with one cause; *signature* is null for those that are not classified yet.

    *by_interval* counts failed runs in each interval of the range, oldest first.
    """

    signature: str | None
    title: str
    category: Category | None
    runs: int
    series: int
    first: datetime
    latest: datetime
    by_interval: list[int]


class FailureCountsOut(Schema):
    """Success rates and causes. *raw_success_rate* is the share of judged runs that passed (null without
    runs); *adjusted_success_rate* leaves out *excused* failures, which do not count against a site or
    happened during planned maintenance. *mean_seconds_between_failures* is operating time per outage
    (*outages* that began after a passed run), and *mean_seconds_to_repair* the mean length of outages that
    ended (*repairs*); null without any."""

    since: datetime
    interval_seconds: float
    passed: int
    failed: int
    excused: int
    raw_success_rate: float | None
    adjusted_success_rate: float | None
    outages: int
    repairs: int
    mean_seconds_between_failures: float | None
    mean_seconds_to_repair: float | None
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
    mean_seconds_between_failures: float | None
    mean_seconds_to_repair: float | None


class BreakdownOut(Schema):
    """The *rows* with the lowest adjusted success rates, at most 100, and how many *more* there are."""

    rows: list[BreakdownRowOut]
    more: int


class HourCountOut(Schema):
    """The runs in an hour (UTC) of a weekday, 1 for Monday to 7, and how many of them failed."""

    weekday: int
    hour: int
    runs: int
    failed: int


@router.get("/failures", response=list[FailureOut], summary="List failed runs, newest first")
def list_failures(
    request: HttpRequest,
    series: str | None = None,
    site: str | None = None,
    signature: str | None = None,
    category: Category | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[Run]:
    """*since* is included, *until* is not. *signature* is a name of `/failures/signatures`."""
    for name, time in (("since", since), ("until", until)):
        if time is not None and time.tzinfo is None:
            raise Refused(
                422, "no_zone", f"{name}: expected a time with a zone, such as 2026-03-01T00:00:00Z"
            )
    conditions = {
        "series__name": series,
        "signature__name": signature,
        "signature__category": category,
        "slot__gte": since,
        "slot__lt": until,
    }
    chosen = {lookup: value for lookup, value in conditions.items() if value is not None}
    failed = runs_at_site(request.user, site or "").filter(state__in=WITH_SIGNATURE, **chosen)
    return list(failed.select_related("series", "signature").order_by("-slot")[:limit])


@router.get("/failures/counts", response=FailureCountsOut, summary="Count failures by cause and time")
def show_counts(request: HttpRequest, range: RangeKey = "7d", site: str | None = None) -> FailureCountsOut:
    chosen, now = chosen_range(range), timezone.now()
    runs = runs_at_site(request.user, site or "")
    counts, times = count_failures(runs, chosen, now), repair_times(judged_runs(runs, chosen, now))
    return FailureCountsOut(
        since=counts.starts[0],
        interval_seconds=chosen.interval.total_seconds(),
        passed=counts.rates.passed,
        failed=counts.rates.failed,
        excused=counts.rates.excused,
        raw_success_rate=counts.rates.raw,
        adjusted_success_rate=counts.rates.adjusted,
        outages=times.outages,
        repairs=times.repairs,
        mean_seconds_between_failures=_seconds(times.between),
        mean_seconds_to_repair=_seconds(times.to_repair),
        causes=[
            CauseOut(
                signature=cause.signature.name if cause.signature else None,
                title=cause.signature.title if cause.signature else "Not classified yet",
                category=Category(cause.signature.category) if cause.signature else None,
                runs=cause.runs,
                series=cause.series,
                first=cause.first,
                latest=cause.latest,
                by_interval=list(cause.by_interval),
            )
            for cause in counts.causes
        ],
    )


class AttributionOut(Schema):
    """A part of the grid that was found to be at fault; *ended_at* is null as long as the results support it.

    *kind* is `source`, `destination`, `edge`, `compute`, `site` (in every role) or `reporter`; the name of an
    edge is `source>destination`. *probability* is that of the verdict; *failed* of *total* results that used
    the part failed.
    """

    kind: PartKind
    name: str
    probability: float
    failed: int
    total: int
    since: datetime
    latest_at: datetime
    decided_at: datetime
    ended_at: datetime | None
    runs: list[uuid.UUID]

    @staticmethod
    def resolve_runs(row: Attribution) -> list[uuid.UUID]:
        return [explained.run for explained in row.runs.all()]


@router.get(
    "/failures/attributions", response=list[AttributionOut], summary="List the parts of the grid at fault"
)
def list_attributions(request: HttpRequest, range: RangeKey = "7d", site: str = "") -> list[Attribution]:
    """Open ones first. *runs* are the failed runs that the verdict rests on, as far as you may see them."""
    visible = AttributedRun.objects.filter(series__in=Series.objects.visible_to(request.user))
    rows = Attribution.objects.visible_to(request.user).prefetch_related(
        Prefetch("runs", visible.order_by("slot", "pk"))
    )
    return recent(rows, chosen_range(range).starts(timezone.now())[0], site)


@router.get("/failures/breakdown", response=BreakdownOut, summary="Break failures down, worst first")
def show_breakdown(
    request: HttpRequest, by: BreakdownKind, range: RangeKey = "7d", site: str | None = None
) -> BreakdownOut:
    """A failed run counts at the site where it failed, and on the paths of its series that begin or end
    there; a passed run at all sites, paths and stages of its series."""
    runs = runs_at_site(request.user, site or "")
    breakdown = break_down(runs, chosen_range(range), timezone.now(), by)
    return BreakdownOut(
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
                mean_seconds_between_failures=_seconds(row.times.between if row.times else None),
                mean_seconds_to_repair=_seconds(row.times.to_repair if row.times else None),
            )
            for row in breakdown.rows
        ],
        more=breakdown.more,
    )


@router.get("/failures/by-hour", response=list[HourCountOut], summary="Count failures by weekday and hour")
def show_hours(request: HttpRequest, range: RangeKey = "7d", site: str | None = None) -> list[HourCountOut]:
    """Hours without runs are left out."""
    judged = judged_runs(runs_at_site(request.user, site or ""), chosen_range(range), timezone.now())
    return [
        HourCountOut(weekday=weekday, hour=hour, runs=count.runs, failed=count.failed)
        for weekday, day in enumerate(count_by_hour(judged), start=1)
        for hour, count in enumerate(day)
        if count.runs
    ]


def chosen_range(key: RangeKey) -> FailureRange:
    return next(each for each in RANGES if each.key == key)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
