"""Series, their segments and values; running a series now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status

from monitor.api.http.auth import require_manageable, require_site_permission
from monitor.api.http.hold_problems import refused
from monitor.api.http.problems import Refused
from monitor.depot.samples.read import history
from monitor.ledger.holds import HoldError
from monitor.ledger.run_now import run_now
from monitor.models import Metric, Series
from monitor.series.segments import segment_status

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["series"])


class SeriesOut(Schema):
    name: str
    suite: str
    probe: str
    parameters: dict[str, Any]
    schedule: str
    enabled: bool

    @staticmethod
    def resolve_suite(series: Series) -> str:
        return series.suite.name


class PointOut(Schema):
    time: datetime
    known_at: datetime
    value: float


class HistoryOut(Schema):
    series: str
    segment: int | None
    metric: str
    unit: str
    points: list[PointOut]


class SegmentOut(Schema):
    number: int
    is_current: bool
    began_at: datetime
    probe: str
    probe_version: str
    parameters: dict[str, Any]
    bindings: dict[str, list[str]]


class RunAccepted(Schema):
    run: str
    state: str


@router.get(
    "/series",
    response=list[SeriesOut],
    operation_id="monitor_api_series_every",
    summary="List the series that you may see",
)
def list_series(request: HttpRequest) -> list[Series]:
    return list(Series.objects.visible_to(request.user).select_related("suite"))


@router.get(
    "/series/{name}/metrics/{metric}", response=HistoryOut, summary="List the values of a metric, newest last"
)
def metric_history(
    request: HttpRequest,
    name: str,
    metric: str,
    newest: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    segment: int | None = None,
) -> HistoryOut:
    """Return values of one *segment* (default: the segment that the next run belongs to)."""
    series = Series.objects.visible_to(request.user).filter(name=name).first()
    metrics = list(Metric.objects.filter(segment__series=series, name=metric).select_related("segment"))
    if not metrics:
        raise Refused(404, "unknown_metric", f"series {name!r} has no metric {metric!r} that you may see")
    number = segment if segment is not None else _current_number(metrics[0].series)
    points = [
        PointOut(time=point.time, known_at=point.known_at, value=point.value)
        for candidate in metrics
        if candidate.segment.number == number
        for point in history(candidate, newest=newest)
    ]
    return HistoryOut(series=name, segment=number, metric=metric, unit=metrics[-1].unit, points=points)


@router.get("/series/{name}/segments", response=list[SegmentOut], summary="List the segments of a series")
def segments(request: HttpRequest, name: str) -> list[SegmentOut]:
    """A change of probe, parameters or resources begins a new segment, with its own history; the series keeps
    its name. Returning to an earlier configuration continues that segment."""
    stands = segment_status(get_object_or_404(Series.objects.visible_to(request.user), name=name))
    fields = ("number", "began_at", "probe", "probe_version", "parameters", "bindings")
    return [
        SegmentOut(
            is_current=segment == stands.current, **{field: getattr(segment, field) for field in fields}
        )
        for segment in stands.segments
    ]


def _current_number(series: Series) -> int | None:
    current = segment_status(series).current
    return current.number if current else None


@router.post(
    "/series/{name}/runs",
    response={202: RunAccepted},
    operation_id="monitor_api_series_ask_for_run",
    summary="Run a series now",
)
def queue_run(request: HttpRequest, name: str, why: str = "", force: bool = False) -> Status[RunAccepted]:
    """*why* is stored with the run. A held series (409) runs only with *force*."""
    require_site_permission(request)
    series = get_object_or_404(Series.objects.visible_to(request.user), name=name)
    require_manageable(series, Series.objects.manageable_by(request.user))
    try:
        run = run_now(series, who=request.user.get_username(), why=why, force=force)
    except HoldError as error:
        raise refused(error) from error
    return Status(202, RunAccepted(run=str(run.pk), state=run.state))
