"""Series, their segments and values."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.depot.samples.read import history
from monitor.depot.series.segments import segment_status
from monitor.models import Metric, Series
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import chosen
from monitor.web.api.http.find_metrics import find_series
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_items, list_rows, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter, Segment

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["series"])


class SeriesOut(Schema):
    """A probe with its parameters and schedule."""

    name: str
    suite: str
    probe: str
    parameters: dict[str, Any]
    schedule: str
    is_enabled: bool

    @staticmethod
    def resolve_is_enabled(series: Series) -> bool:
        return series.enabled

    @staticmethod
    def resolve_suite(series: Series) -> str:
        return series.suite.name


class PointOut(Schema):
    """A value, and the time from which on it was known."""

    time: datetime
    known_at: datetime
    value: float


class ValuesOut(Schema):
    """Values of a metric in a segment, oldest first."""

    series: str
    segment: int | None
    metric: str
    unit: str
    points: list[PointOut]


class SegmentOut(Schema):
    """A segment: the runs of a series between two changes of its configuration."""

    number: int
    is_current: bool
    began_at: datetime
    probe: str
    probe_version: str
    parameters: dict[str, Any]
    bindings: dict[str, list[str]]


class SeriesList(ListOut):
    series: list[SeriesOut]


class SegmentList(ListOut):
    segments: list[SegmentOut]


class SeriesQuery(Page):
    suite: NameFilter = ""
    site: NameFilter = ""
    probe: NameFilter = ""
    reporter: NameFilter = ""
    is_enabled: bool | None = None


@router.get(
    "/series",
    auth=SCHEDULER_AUTH,
    response=SeriesList,
    operation_id="list_series",
    summary="List series, by name",
)
def list_series(request: HttpRequest, query: Query[SeriesQuery]) -> HttpResponse:
    """The series that you may see."""
    lookups = chosen(
        suite__name=query.suite,
        probe=query.probe,
        reporter__name=query.reporter,
        enabled=query.is_enabled,
    )
    rows = Series.objects.visible_to(request.user).filter(**lookups).select_related("suite")
    if query.site:
        rows = rows.filter(
            pk__in=Series.objects.filter(bindings__resource__site__name=query.site).values("pk")
        )
    return list_rows(query, rows, SeriesList, order=["sort_name"])


class ValuesQuery(Sparse):
    newest: Annotated[int, Field(ge=1, le=10_000)] = 1000
    segment: Segment | None = None


@router.get(
    "/series/{series}/metrics/{metric}",
    response=ValuesOut,
    operation_id="show_metric",
    openapi_extra=declare(errors={404: ["unknown_metric"]}),
    summary="Show a metric with its newest values",
)
def show_metric(request: HttpRequest, series: str, metric: str, query: Query[ValuesQuery]) -> HttpResponse:
    """Values of one *segment* (default: the segment that the next run belongs to)."""
    found = Series.objects.visible_to(request.user).filter(name=series).first()
    metrics = list(Metric.objects.filter(segment__series=found, name=metric).select_related("segment"))
    if not metrics:
        raise Refused(404, "unknown_metric", f"series {series!r} has no metric {metric!r} that you may see")
    number = query.segment if query.segment is not None else _current_number(metrics[0].series)
    points = [
        {"time": point.time, "known_at": point.known_at, "value": point.value}
        for candidate in metrics
        if candidate.segment.number == number
        for point in history(candidate, newest=query.newest)
    ]
    values = {
        "series": series,
        "segment": number,
        "metric": metric,
        "unit": metrics[-1].unit,
        "points": points,
    }
    return show_item(query, values, ValuesOut)


@router.get(
    "/series/{series}/segments",
    response=SegmentList,
    operation_id="list_segments",
    openapi_extra=declare(errors={404: ["unknown_series"]}),
    summary="List the segments of a series",
)
def list_segments(request: HttpRequest, series: str, query: Query[Page]) -> HttpResponse:
    """A change of probe, parameters or resources begins a new segment, with its own history; the series keeps
    its name. Returning to an earlier configuration continues that segment."""
    status = segment_status(find_series(request, series))
    return list_items(
        query,
        sorted(status.segments, key=lambda segment: segment.number),
        SegmentList,
        key=lambda segment: (segment.number,),
        show=lambda segment: SegmentOut(
            is_current=segment == status.current,
            **{field: getattr(segment, field) for field in SegmentOut.model_fields if field != "is_current"},
        ),
    )


def _current_number(series: Series) -> int | None:
    current = segment_status(series).current
    return current.number if current else None
