"""What series came to last: of one, and of very many."""

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

from monitor.api.answers import answer, times
from monitor.api.lookup import find_series
from monitor.models import Series
from monitor.models.run import ENDED
from monitor.overview.latest import LETTERS, UNKNOWN, Latest, latest
from monitor.overview.series_list import NOT_WORKING, Choice, after

if TYPE_CHECKING:
    from django.http import HttpRequest
    from numpy.typing import NDArray

MOST = 10_000

router = Router()
of_series = Router()

Wanted = Enum("Wanted", {state: state for state in (NOT_WORKING, *map(str, ENDED))})  # type: ignore[misc]


class LatestOut(Schema):
    """*state* and what follows it are of the newest run that tells something (any but a skipped one), null or
    empty without one; *age_seconds* ago it ended. *outcomes* are the states of the newest runs, oldest first.
    *hourly_seconds* are the mean totals of passed runs in each of the 24 hours before *hours_end*, oldest
    first, null where there was none; they are as near to what was measured as single precision is."""

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
    """A page of them, by name; the next begins *after* the last of these, null if there is none."""

    latest: list[LatestOut]
    after: str | None


@of_series.get("/{name}/latest", response=LatestOut, summary="What a series came to last")
def one(request: HttpRequest, name: str) -> HttpResponse:
    series = find_series(request, name)
    (found,) = _entries(latest(Series.objects.filter(pk=series.pk), timezone.now()))
    return answer(found)


@router.get("", response=ManyLatestOut, summary="What series came to last, very many at once")
def many(
    request: HttpRequest,
    site: str = "",
    suite: str = "",
    state: Wanted | None = None,
    after_name: Annotated[str, Query(alias="after")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 1000,
) -> HttpResponse:
    """Those of a *site*, a *suite*, in a *state*; a page at a time, by name."""
    keys = after(
        request.user, Choice(site, suite, state.value if state else ""), name=after_name, at_most=limit + 1
    )
    found = latest(Series.objects.filter(pk__in=keys[:limit]), timezone.now())
    entries = sorted(_entries(found), key=lambda entry: str(entry["series"]))
    return answer({"latest": entries, "after": entries[-1]["series"] if len(keys) > limit else None})


def _entries(found: Latest) -> Iterator[dict[str, object]]:
    """As ``LatestOut``."""
    columns = zip(
        found.name.tolist(),
        found.state.tolist(),
        found.run.tolist(),
        _times(found.slot),
        _times(found.ended_at),
        found.age.tolist(),
        found.stage.tolist(),
        found.failed_resource.tolist(),
        found.outcomes,
        times(found.hours_end),
        found.means.tolist(),
        strict=True,
    )
    for name, state, run, slot, ended_at, age, stage, failed_resource, outcomes, hours_end, means in columns:
        is_told = state.decode() in LETTERS
        yield {
            "series": name,
            "state": LETTERS[state.decode()] if is_told else None,
            "run": uuid.UUID(bytes=run) if is_told else None,
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
    return [None if never else text for never, text in zip(micros == UNKNOWN, times(micros), strict=True)]
