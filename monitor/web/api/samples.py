"""Samples: every value of a metric as it was measured."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import Sample
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter, chosen
from monitor.web.api.http.find_metrics import find_metric
from monitor.web.api.http.lists import ListOut, Page, list_rows
from monitor.web.api.http.schemas import Segment

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["values"])


class SampleOut(Schema):
    """One value of a metric, in its unit (`show_series`)."""

    time: datetime = Field(description="The slot of the run.", examples=["2026-03-01T12:00:00Z"])
    known_at: datetime = Field(
        description="When the value became known: the end of the run.", examples=["2026-03-01T12:01:32Z"]
    )
    value: float = Field(description="The value.", examples=[87.25])
    has_passed: bool = Field(
        description="Whether the run passed; forecasts use only such values.", examples=[True]
    )


class SampleList(ListOut):
    """A page of samples, oldest first."""

    samples: list[SampleOut]


class SampleQuery(Page, WindowFilter):
    """The samples to list; *start* and *end* bound the slot."""

    segment: Segment | None = Field(
        None, description="The number of a segment; by default the one that ran last.", examples=[1]
    )
    has_passed: bool | None = Field(
        None, description="Only the values of passed runs, or only those of others.", examples=[True]
    )


@router.get(
    "/series/{series}/metrics/{metric}/samples",
    response=SampleList,
    operation_id="list_samples",
    openapi_extra=declare(errors={404: ["unknown_series", "unknown_metric", "unknown_segment"]}),
    summary="List the samples of a metric, oldest first",
)
def list_samples(request: HttpRequest, series: str, metric: str, query: Query[SampleQuery]) -> HttpResponse:
    """Raw values of one *segment*, page by page without an end. `/series/{series}/export` has the whole
    history in one answer, and `.../history` a number of points of any window."""
    wanted = find_metric(request, series, metric, query.segment)
    rows = Sample.objects.filter(metric=wanted, **chosen(passed=query.has_passed))
    return list_rows(query, query.within(rows, "time"), SampleList, order=["time"], show=_shown)


def _shown(sample: Sample) -> dict[str, Any]:
    return {
        "time": sample.time,
        "known_at": sample.known_at,
        "value": sample.value,
        "has_passed": sample.passed,
    }
