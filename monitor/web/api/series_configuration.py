"""One series with its configuration: probe, schedule, resources by role, segments and metrics."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.depot.series.segments import current_bindings, segment_status
from monitor.models import Metric, Series
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import chosen
from monitor.web.api.http.find_metrics import find_series
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter, Segment

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models import Segment as SegmentRow

router = Router(tags=["series"])
MOST_METRICS = 1000  # in the answer about a series


class MetricOfSeries(Schema):
    """A metric of a segment."""

    name: str = Field(description="The name of the metric.", examples=["total.seconds"])
    unit: str = Field(description="The unit.", examples=["seconds"])
    segment: int = Field(description="The number of the segment.", examples=[1])


class SegmentOfSeries(Schema):
    """A segment of the series; `/series/{series}/segments` has all of it."""

    number: int = Field(description="The number of the segment.", examples=[1])
    began_at: datetime = Field(
        description="The earliest slot with values.", examples=["2026-03-01T12:00:00Z"]
    )
    is_current: bool = Field(description="Whether the next run belongs to it.", examples=[True])


class SeriesConfiguration(Schema):
    """A series: what is run, where, when, and by which reporter."""

    name: str = Field(description="The name of the series.", examples=["gather-main"])
    suite: str = Field(description="The name of its suite.", examples=["main"])
    probe: str = Field(description="The name of the probe.", examples=["gather"])
    parameters: dict[str, Any] = Field(
        description="The parameters that differ from the defaults of the probe.",
        examples=[{"file_bytes": 100_000_000}],
    )
    resources: dict[str, list[str]] = Field(
        description="The names of the resources by role, in order.",
        examples=[{"sources": ["ncsa-login"], "compute": ["sdsc-login"]}],
    )
    sites: list[str] = Field(description="The names of the sites of these resources.", examples=[["ncsa"]])
    reporter: str = Field(description="The reporter that runs it.", examples=["home"])
    is_enabled: bool = Field(description="Whether its slots are run.", examples=[True])
    schedule: str = Field(
        description="Five cron fields, or a name such as `@hourly`; empty: on request, or with its leader.",
        examples=["H * * * *"],
    )
    timezone: str = Field(description="The time zone of the schedule.", examples=["UTC"])
    starts_at: datetime | None = Field(
        description="No slot is earlier; null: no limit.", examples=["2026-03-01T00:00:00Z"]
    )
    ends_at: datetime | None = Field(
        description="No slot is later; null: no limit.", examples=["2026-12-31T00:00:00Z"]
    )
    leader: str | None = Field(
        description="The series that it runs with or after; null: none.", examples=["preco-main"]
    )
    follows: str = Field(
        description="How it follows its leader: `with`, `after` or, without one, empty.", examples=["with"]
    )
    delay_seconds: int = Field(description="How long after its leader it runs.", examples=[1800])
    jitter_seconds: int = Field(description="How much later than its slot it may start.", examples=[60])
    limit_seconds: float = Field(description="A longer run is stopped: `timed_out`.", examples=[1800])
    segments: list[SegmentOfSeries] = Field(description="Its segments, in order of their numbers.")
    metrics: list[MetricOfSeries] = Field(
        description=(
            f"The metrics of the newest segment by name, at most {MOST_METRICS:,};"
            " `/series/{series}/metrics` lists all."
        )
    )


class MetricList(ListOut):
    """A page of metrics, by segment and name."""

    metrics: list[MetricOfSeries]


class MetricQuery(Page):
    """The metrics to list."""

    segment: Segment | None = Field(
        None, description="The number of a segment; by default all.", examples=[1]
    )
    name: NameFilter = Field("", description="The name of a metric.", examples=["total.seconds"])


@router.get(
    "/series/{series}",
    auth=SCHEDULER_AUTH,
    response=SeriesConfiguration,
    operation_id="show_series",
    openapi_extra=declare(errors={404: ["unknown_series"]}),
    summary="Show a series: probe, schedule, resources, segments and metrics",
)
def show_series(request: HttpRequest, series: str, query: Query[Sparse]) -> HttpResponse:
    """With the configuration of its next run; `/series/{series}/latest` has its state."""
    visible = Series.objects.visible_to(request.user).select_related("suite", "reporter", "leader")
    found = visible.filter(name=series).first()
    if found is None:
        raise Refused(404, "unknown_series", f"there is no series {series!r} that you may see")
    return show_item(query, _shown(found), SeriesConfiguration)


@router.get(
    "/series/{series}/metrics",
    response=MetricList,
    operation_id="list_metrics",
    openapi_extra=declare(errors={404: ["unknown_series"]}),
    summary="List the metrics of a series",
)
def list_metrics(request: HttpRequest, series: str, query: Query[MetricQuery]) -> HttpResponse:
    """By segment and name: a metric that several segments measured is listed once for each."""
    found = find_series(request, series)
    lookups = chosen(segment__number=query.segment, name=query.name)
    rows = Metric.objects.filter(segment__series=found, **lookups).select_related("segment")
    return list_rows(query, rows, MetricList, order=["segment__number", "name"], show=_metric)


def _metric(metric: Metric) -> dict[str, Any]:
    return {"name": metric.name, "unit": metric.unit, "segment": metric.segment.number}


def _shown(series: Series) -> dict[str, Any]:
    status = segment_status(series)
    segments = sorted(status.segments, key=lambda segment: segment.number)
    newest = status.current or (segments[-1] if segments else None)
    sites = series.bindings.order_by("resource__site__sort_name").values_list(
        "resource__site__name", flat=True
    )
    same = ("name", "probe", "parameters", "schedule", "timezone", "starts_at", "ends_at", "follows")
    numbers = ("delay_seconds", "jitter_seconds", "limit_seconds")
    return {
        **{name: getattr(series, name) for name in (*same, *numbers)},
        "suite": series.suite.name,
        "resources": current_bindings([series.pk]).get(series.pk, {}),
        "sites": list(sites.distinct()),
        "reporter": series.reporter.name,
        "is_enabled": series.enabled,
        "leader": series.leader.name if series.leader else None,
        "segments": [
            {
                "number": segment.number,
                "began_at": segment.began_at,
                "is_current": segment == status.current,
            }
            for segment in segments
        ],
        "metrics": _metrics(newest),
    }


def _metrics(segment: SegmentRow | None) -> list[dict[str, Any]]:
    rows = Metric.objects.filter(segment=segment).select_related("segment").order_by("name")
    return [_metric(metric) for metric in rows[:MOST_METRICS]]
