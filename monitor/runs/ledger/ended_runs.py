"""Runs that ended, as their subscribers read them: in order, and until the subscriber has handled them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitor.models import Binding, EndedRun, Run, RunSubscriber
from monitor.models.run import WITH_SIGNATURE

CLASSIFIED_WITHIN = timedelta(seconds=30)  # a failed run waits this long for its signature
MOST = 500  # in one batch


@dataclass(frozen=True)
class EndedRunEvent:
    """A run that ended in *state* at *at*; *sites* are those of its series. *key* orders the events."""

    key: int
    run: Run
    state: str
    at: datetime
    sites: Sequence[str]


def subscribe(subscriber: str, *, is_wanted: bool) -> None:
    """Keep ended runs for *subscriber* from now on, or keep none and forget those that were kept."""
    if is_wanted:
        RunSubscriber.objects.get_or_create(name=subscriber)
    elif RunSubscriber.objects.filter(name=subscriber).delete()[0]:
        EndedRun.objects.filter(subscriber=subscriber).delete()


def next_events(subscriber: str, now: datetime, most: int = MOST) -> tuple[list[int], list[EndedRunEvent]]:
    """Return the keys of the oldest rows of *subscriber*, at most *most*, and their events.

    Runs that were deleted meanwhile have no event. The batch ends before a failed run that waits for its
    signature. The caller passes the keys to ``forget`` when it has handled the events.
    """
    rows = list(EndedRun.objects.filter(subscriber=subscriber).order_by("pk")[:most])
    found = Run.objects.filter(pk__in={row.run for row in rows}, slot__in={row.slot for row in rows})
    runs = {run.pk: run for run in found.select_related("series__suite", "signature")}
    sites = _sites({run.series_id for run in runs.values()})
    keys, events = [], []
    for row in rows:
        run = runs.get(row.run)
        if run is not None and _waits_for_signature(run, row, now):
            break
        keys.append(row.pk)
        if run is not None:
            events.append(EndedRunEvent(row.pk, run, row.state, row.at, sites.get(run.series_id, ())))
    return keys, events


def forget(keys: Sequence[int]) -> None:
    EndedRun.objects.filter(pk__in=keys).delete()


def drop_oldest(subscriber: str, at_most: int) -> int:
    """Delete the oldest rows of *subscriber* beyond *at_most*; return their number."""
    newest = EndedRun.objects.filter(subscriber=subscriber).order_by("-pk")
    first_dropped = newest.values_list("pk", flat=True)[at_most : at_most + 1].first()
    if first_dropped is None:
        return 0
    return EndedRun.objects.filter(subscriber=subscriber, pk__lte=first_dropped).delete()[0]


def _waits_for_signature(run: Run, row: EndedRun, now: datetime) -> bool:
    is_classified = run.state not in WITH_SIGNATURE or run.signature_id is not None
    return not is_classified and row.at > now - CLASSIFIED_WITHIN


def _sites(series: set[int]) -> dict[int, list[str]]:
    names = Binding.objects.filter(series__in=series).order_by("resource__site__sort_name")
    sites: dict[int, list[str]] = {}
    for key, site in names.values_list("series", "resource__site__name").distinct():
        sites.setdefault(key, []).append(site)
    return sites
