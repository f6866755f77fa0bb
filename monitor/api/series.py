"""Series: what is watched, and the values that it gave."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema, Status

from monitor.api.auth import require_run_permission
from monitor.api.holds import refused
from monitor.api.problems import Refused
from monitor.depot.samples.read import history
from monitor.ledger.holds import HoldError
from monitor.ledger.run_now import run_now
from monitor.models import Metric, Series
from monitor.series.segments import segment_status

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router()


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


@router.get("", response=list[SeriesOut], summary="The series that you may see")
def every(request: HttpRequest) -> list[Series]:
    return list(Series.objects.visible_to(request.user).select_related("suite"))


@router.get("/{name}/metrics/{metric}", response=HistoryOut, summary="The values of one metric, newest last")
def metric_history(
    request: HttpRequest,
    name: str,
    metric: str,
    newest: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    segment: int | None = None,
) -> HistoryOut:
    """Of one *segment*: the one that the next run belongs to, unless you name another."""
    series = Series.objects.visible_to(request.user).filter(name=name).first()
    metrics = list(Metric.objects.filter(segment__series=series, name=metric).select_related("segment"))
    if not metrics:
        raise Refused(404, "unknown_metric", f"series {name!r} has no metric {metric!r} that you may see")
    number = segment if segment is not None else _current_number(metrics[0].series)
    found = [one for one in metrics if one.segment.number == number]
    points = [
        PointOut(time=point.time, known_at=point.known_at, value=point.value)
        for one in found
        for point in history(one, newest=newest)
    ]
    return HistoryOut(series=name, segment=number, metric=metric, unit=metrics[-1].unit, points=points)


@router.get("/{name}/segments", response=list[SegmentOut], summary="What a series ran, by time")
def segments(request: HttpRequest, name: str) -> list[SegmentOut]:
    """A series whose probe, parameters or resources change keeps its name and begins a segment: a history of
    its own. One that goes back to what it ran before goes on with that segment."""
    stands = segment_status(get_object_or_404(Series.objects.visible_to(request.user), name=name))
    fields = ("number", "began_at", "probe", "probe_version", "parameters", "bindings")
    return [
        SegmentOut(is_current=one == stands.current, **{field: getattr(one, field) for field in fields})
        for one in stands.segments
    ]


def _current_number(series: Series) -> int | None:
    current = segment_status(series).current
    return current.number if current else None


@router.post("/{name}/runs", response={202: RunAccepted}, summary="Run a series now")
def ask_for_run(request: HttpRequest, name: str, why: str = "", force: bool = False) -> Status[RunAccepted]:
    """*why* is kept with the run. What is held (409) runs only with *force*."""
    require_run_permission(request)
    series = get_object_or_404(Series.objects.visible_to(request.user), name=name)
    try:
        run = run_now(series, who=request.user.get_username(), why=why, force=force)
    except HoldError as error:
        raise refused(error) from error
    return Status(202, RunAccepted(run=str(run.pk), state=run.state))
