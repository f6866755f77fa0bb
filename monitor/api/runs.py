"""Runs: what became of every slot."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema

from monitor.models import Run

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router()


class RunOut(Schema):
    id: uuid.UUID
    series: str
    slot: datetime
    state: str
    reason: str
    stage: str
    failed_resource: str
    started_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def resolve_series(run: Run) -> str:
        return run.series.name


@router.get("", response=list[RunOut], summary="The latest runs, newest first")
def latest(
    request: HttpRequest, series: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Run]:
    runs = Run.objects.visible_to(request.user).ended().select_related("series").order_by("-slot")
    return list(runs.filter(series__name=series)[:limit] if series else runs[:limit])


@router.get("/{run_id}", response=RunOut, summary="One run")
def one(request: HttpRequest, run_id: uuid.UUID) -> Run:
    return get_object_or_404(Run.objects.visible_to(request.user).select_related("series"), pk=run_id)
