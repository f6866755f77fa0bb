"""Suites: named groups of series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Count
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import Suite
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models.suite import SuiteQuerySet

router = Router(tags=["series"])

_DAYS = "Days for which {} are kept; null: for ever."


class SuiteOut(Schema):
    """A suite, and how long its data are kept."""

    name: str = Field(description="The name of the suite.", examples=["main"])
    title: str = Field(description="The title on pages; may be empty.", examples=["Main suite"])
    is_public: bool = Field(description="Whether visitors see its state without a login.", examples=[False])
    series_count: int = Field(description="How many series it has.", examples=[120])
    keep_reports_days: int | None = Field(description=_DAYS.format("raw reports"), examples=[90])
    keep_samples_days: int | None = Field(description=_DAYS.format("samples"), examples=[400])
    keep_hourly_days: int | None = Field(description=_DAYS.format("hourly rollups"), examples=[None])
    keep_daily_days: int | None = Field(description=_DAYS.format("daily rollups"), examples=[None])


class SuiteList(ListOut):
    """A page of suites, by name."""

    suites: list[SuiteOut]


@router.get("/suites", response=SuiteList, operation_id="list_suites", summary="List suites")
def list_suites(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """The suites that you may see, by name."""
    return list_rows(query, _visible(request), SuiteList, order=["sort_name"])


@router.get(
    "/suites/{suite}",
    response=SuiteOut,
    operation_id="show_suite",
    openapi_extra=declare(errors={404: ["unknown_suite"]}),
    summary="Show a suite",
)
def show_suite(request: HttpRequest, suite: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    found: Any = _visible(request).filter(name=suite).first()
    if found is None:
        raise Refused(404, "unknown_suite", f"there is no suite {suite!r} that you may see")
    return show_item(query, found, SuiteOut)


def _visible(request: HttpRequest) -> SuiteQuerySet:
    visible = Suite.objects.filter(pk__in=Suite.objects.visible_to(request.user).order_by().values("pk"))
    return visible.annotate(series_count=Count("series"))
