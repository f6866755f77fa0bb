"""The latest state of one series, or of up to 10,000 at once."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.api.http.answers import answer, rfc3339
from monitor.api.http.find_metrics import find_series
from monitor.models import Series
from monitor.models.run import ENDED
from monitor.overview.latest import LETTERS, UNKNOWN, Latest, latest
from monitor.overview.series_list import NOT_WORKING, SeriesChoice, keys_after

if TYPE_CHECKING:
    from django.http import HttpRequest
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


class ManyLatestOut(Schema):
    """One page, sorted by name. *after* is the parameter that selects the next page; null on the last."""

    latest: list[LatestOut]
    after: str | None


@router.get(
    "/series/{name}/latest",
    response=LatestOut,
    operation_id="monitor_api_latest_one",
    summary="The latest state of a series",
)
def latest_of_series(request: HttpRequest, name: str) -> HttpResponse:
    series = find_series(request, name)
    (entry,) = _entries(latest(Series.objects.filter(pk=series.pk), timezone.now()))
    return answer(entry)


@router.get(
    "/latest",
    response=ManyLatestOut,
    operation_id="monitor_api_latest_many",
    summary="The latest states of many series",
)
def list_latest(
    request: HttpRequest,
    site: str = "",
    suite: str = "",
    state: Wanted | None = None,
    after_name: Annotated[str, Query(alias="after")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 1000,
) -> HttpResponse:
    """Return a page of series, filtered by *site*, *suite* and *state* and sorted by name."""
    keys = keys_after(
        request.user,
        SeriesChoice(site, suite, state.value if state else ""),
        name=after_name,
        at_most=limit + 1,
    )
    rows = latest(Series.objects.filter(pk__in=keys[:limit]), timezone.now())
    entries = sorted(_entries(rows), key=lambda entry: str(entry["series"]))
    return answer({"latest": entries, "after": entries[-1]["series"] if len(keys) > limit else None})


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
