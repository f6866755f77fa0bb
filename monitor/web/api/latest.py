"""The latest state of one series, or of up to 10,000 at once."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import Series
from monitor.models.natural_order import sort_name
from monitor.models.run import ENDED
from monitor.web.api.http.answers import rfc3339
from monitor.web.api.http.declare import declare
from monitor.web.api.http.find_metrics import find_series
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_named, show_item
from monitor.web.api.http.schemas import NameFilter
from monitor.web.search.series_list import NOT_WORKING, SeriesChoice, keys_after
from monitor.web.status.latest import LETTERS, UNKNOWN, Latest, latest

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from numpy.typing import NDArray

MOST = 10_000

router = Router(tags=["latest"])

Wanted = Enum("Wanted", {state: state for state in (NOT_WORKING, *map(str, ENDED))})  # type: ignore[misc]


class LatestOut(Schema):
    """The fields from *state* to *failed_resource* describe the newest run that was not skipped; they are
    null or empty if there is no such run. *age_seconds* is the time since this run ended. *outcomes* lists
    the states of the newest runs, oldest first. *hourly_seconds* lists the mean total of passed runs in each
    of the 24 hours before *hours_end*, oldest first, in single precision; it is null for an hour without a
    passed run."""

    series: str
    state: str | None
    run: uuid.UUID | None
    slot: datetime | None
    ended_at: datetime | None
    age_seconds: float | None
    stage: str
    failed_resource: str
    outcomes: list[str]
    hours_end: datetime
    hourly_seconds: list[float | None]


class LatestList(ListOut):
    latest: list[LatestOut]


class LatestQuery(Page):
    limit: Annotated[int, Field(ge=1, le=MOST)] = 1000
    site: NameFilter = ""
    suite: NameFilter = ""
    state: Wanted | None = None


@router.get(
    "/series/{series}/latest",
    response=LatestOut,
    operation_id="show_latest",
    openapi_extra=declare(errors={404: ["unknown_series"]}),
    summary="Show the latest state of a series",
)
def show_latest(request: HttpRequest, series: str, query: Query[Sparse]) -> HttpResponse:
    found = find_series(request, series)
    (entry,) = _entries(latest(Series.objects.filter(pk=found.pk), timezone.now()))
    return show_item(query, entry, LatestOut)


@router.get(
    "/latest",
    response=LatestList,
    operation_id="list_latest",
    summary="List the latest states of series, by name",
)
def list_latest(request: HttpRequest, query: Query[LatestQuery]) -> HttpResponse:
    """The series that you may see; `not-working` stands for all states that count as failures."""

    def named(after: str, at_most: int) -> list[dict[str, object]]:
        filters = SeriesChoice(query.site, query.suite, query.state.value if query.state else "")
        keys = keys_after(request.user, filters, name=after, at_most=at_most)
        rows = latest(Series.objects.filter(pk__in=keys), timezone.now())
        return sorted(_entries(rows), key=lambda entry: sort_name(str(entry["series"])))

    return list_named(query, named, LatestList, key="series")


def _entries(rows: Latest) -> Iterator[dict[str, object]]:
    """Yield the fields of ``LatestOut``."""
    columns = zip(
        rows.name.tolist(),
        rows.state.tolist(),
        rows.run.tolist(),
        _times(rows.slot),
        _times(rows.ended_at),
        rows.age.tolist(),
        rows.stage.tolist(),
        rows.failed_resource.tolist(),
        rows.outcomes,
        rfc3339(rows.hours_end),
        rows.means.tolist(),
        strict=True,
    )
    for name, state, run, slot, ended_at, age, stage, failed_resource, outcomes, hours_end, means in columns:
        has_run = state.decode() in LETTERS
        yield {
            "series": name,
            "state": LETTERS[state.decode()] if has_run else None,
            "run": uuid.UUID(bytes=run) if has_run else None,
            "slot": slot,
            "ended_at": ended_at,
            "age_seconds": None if math.isnan(age) else age,
            "stage": stage,
            "failed_resource": failed_resource,
            "outcomes": [LETTERS[letter] for letter in outcomes.tobytes().decode().strip()],
            "hours_end": hours_end,
            "hourly_seconds": [None if math.isnan(mean) else mean for mean in means],
        }


def _times(micros: NDArray) -> list[str | None]:  # type: ignore[type-arg]
    return [
        None if is_unknown else text
        for is_unknown, text in zip(micros == UNKNOWN, rfc3339(micros), strict=True)
    ]
