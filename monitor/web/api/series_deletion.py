"""The deletion of a series with many runs, which the control worker does in the background."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import SeriesDeletion
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["series"])


class SeriesDeletionOut(Schema):
    """How far the deletion of a series is. Its name may be used again when it has ended."""

    name: str = Field(description="The name of the series.", examples=["gather-main"])
    requested_at: datetime = Field(description="When it was requested.", examples=["2026-03-01T12:00:00Z"])
    requested_by: str = Field(description="The user who requested it.", examples=["ada"])
    runs: int = Field(description="How many runs the series had.", examples=[60_000])
    deleted_runs: int = Field(description="How many runs are deleted.", examples=[20_500])
    percent: int = Field(description="How far it is; 100 when it has ended.", examples=[34])
    hindrance: str = Field(description="Why it cannot end now; empty if nothing hinders.", examples=[""])
    ended_at: datetime | None = Field(
        description="When the series was gone; null before.", examples=["2026-03-01T12:01:00Z"]
    )


@router.get(
    "/series/{series}/deletion",
    response=SeriesDeletionOut,
    operation_id="show_series_deletion",
    openapi_extra=declare(errors={404: ["unknown_deletion"]}),
    summary="Show how far the deletion of a series is",
)
def show_series_deletion(request: HttpRequest, series: str, query: Query[Sparse]) -> HttpResponse:
    """The newest deletion of a series of this name. Its record is kept for 30 days."""
    deletion = SeriesDeletion.objects.visible_to(request.user).filter(name=series).first()
    if deletion is None:
        detail = f"no series {series!r} that you may see is or was being deleted"
        raise Refused(404, "unknown_deletion", detail)
    return show_item(query, deletion, SeriesDeletionOut)
