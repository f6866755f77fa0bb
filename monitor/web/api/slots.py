"""Slots of the ledger: every scheduled time of a series, and what became of it."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import Run
from monitor.models.run import ENDED, State
from monitor.runs.ledger.slots import SlotState, in_slot_state, slot_state
from monitor.web.api.http.filters import SeriesFilter, WindowFilter
from monitor.web.api.http.lists import ListOut, Page, list_rows

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["runs"])
USUAL_WINDOW = timedelta(days=1)


class SlotOut(Schema):
    """A scheduled or requested time of a series, and what became of it."""

    series: str = Field(description="The name of the series.", examples=["gather-main"])
    slot: datetime = Field(description="The time by the schedule.", examples=["2026-03-01T12:00:00Z"])
    state: SlotState = Field(
        description=(
            "`planned`: its time has not come. `due`: no reporter has claimed it. `late`: due for longer than"
            " the grace time. `claimed`: a reporter has claimed it or runs it. `done`: a report came."
            " `skipped`: it was not to run. `missed`: no report came."
        ),
        examples=["done"],
    )
    due_at: datetime = Field(
        description="When it may start: the slot and the jitter of its series.",
        examples=["2026-03-01T12:00:04Z"],
    )
    trigger: str = Field(
        description="`schedule`, `retry`, or the user who requested it, and why.", examples=["schedule"]
    )
    run: uuid.UUID = Field(
        description="The id of its run, for `/runs/{run}`.", examples=["6f1c3c52-8d1e-5d0c-9a55-1d0f3c1b7a10"]
    )
    outcome: State | None = Field(
        description="The state in which the run ended; null before its end.", examples=["passed"]
    )
    reason: str = Field(
        description="Why it was skipped, missed or failed; empty if there is nothing to say.",
        examples=["maintenance: new disks, until 2026-03-02 08:00 UTC"],
    )
    started_at: datetime | None = Field(
        description="When the run started; null if it did not.", examples=["2026-03-01T12:00:05Z"]
    )
    ended_at: datetime | None = Field(
        description="When the run ended; null if it has not.", examples=["2026-03-01T12:01:32Z"]
    )


class SlotList(ListOut):
    """A page of slots, newest first."""

    slots: list[SlotOut]


class SlotQuery(Page, SeriesFilter, WindowFilter):
    """The slots to list; *start* and *end* bound the slot."""

    state: SlotState | None = Field(None, description="The state of the slot.", examples=["missed"])


@router.get("/slots", response=SlotList, operation_id="list_slots", summary="List slots, newest first")
def list_slots(request: HttpRequest, query: Query[SlotQuery]) -> HttpResponse:
    """Slots are in the ledger from a day ahead on. Without *series*, *start* is by default a day ago."""
    now = timezone.now()
    if query.start is None and not query.series:
        query.start = min(now, query.end or now) - USUAL_WINDOW
    runs = Run.objects.visible_to(request.user).select_related("series")
    if query.state is not None:
        runs = in_slot_state(runs, query.state, now)
    rows = query.within(query.of_series(runs), "slot")
    return list_rows(query, rows, SlotList, order=["-slot", "-id"], show=lambda run: _shown(run, now))


def _shown(run: Run, now: datetime) -> dict[str, Any]:
    return {
        "series": run.series.name,
        "slot": run.slot,
        "state": slot_state(run, now).value,
        "due_at": run.due_at,
        "trigger": run.trigger,
        "run": run.pk,
        "outcome": run.state if run.state in ENDED else None,
        "reason": run.reason,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
    }
