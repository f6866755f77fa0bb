"""The table of runs: those that a filter selects, newest first, page by page, and their causes."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, time, tzinfo
from typing import TYPE_CHECKING

from django.db.models import Q
from django.db.models.functions import TruncTime

from monitor.models import FailureSignature, Run, Series
from monitor.models.run import DID_NOT_PASS, ENDED, IN_FLIGHT, WITH_SIGNATURE, State
from reporters.fields import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.run import RunQuerySet
    from monitor.models.series import SeriesQuerySet

NOT_PASSED, IN_PROGRESS = "not_passed", "in_progress"  # outcomes that stand for several states
MOST_LISTED_SERIES = 500  # so many are looked up by series, and more by time
MOST_COUNTED = 5_000  # newest failed runs whose causes are counted


@dataclass(frozen=True)
class RunFilter:
    """What the table shows; an empty text selects everything.

    Attributes:
        series: a part of the name of the series.
        outcome: a state, ``NOT_PASSED`` or ``IN_PROGRESS``; empty: every state in which runs end.
        signature: the name of the cause.
        start, end: slots from *start* (None: the first) until before *end*.
        from_time, to_time: the time of day of the slot in *zone*; a *to_time* before *from_time* is that of
            the next day. None: any.
    """

    end: datetime
    zone: tzinfo
    start: datetime | None = None
    site: str = ""
    series: str = ""
    outcome: str = ""
    stage: str = ""
    signature: str = ""
    from_time: time | None = None
    to_time: time | None = None


@dataclass(frozen=True)
class CauseShare:
    """The number of *runs* with the cause *signature* (None: not classified yet), and their share of all."""

    signature: FailureSignature | None
    runs: int
    share: float


def states_of(outcome: str) -> Sequence[str]:
    """Return the states that *outcome* stands for; those in which runs end for one that is unknown."""
    if outcome == NOT_PASSED:
        return DID_NOT_PASS
    if outcome == IN_PROGRESS:
        return IN_FLIGHT
    return [outcome] if outcome in ENDED else ENDED


def selected_runs(chosen: RunFilter, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
    """Return the runs that *chosen* selects and *user* may see, unordered."""
    runs = Run.objects.filter(slot__lt=chosen.end, state__in=states_of(chosen.outcome)).order_by()
    if chosen.start is not None:
        runs = runs.filter(slot__gte=chosen.start)
    runs = _of_series(runs, chosen, user)
    if chosen.stage:
        runs = runs.filter(stage=chosen.stage).exclude(state=State.PASSED)
    if chosen.signature:
        signature = FailureSignature.objects.filter(name=chosen.signature).first()
        runs = runs.filter(signature=signature, state__in=WITH_SIGNATURE) if signature else runs.none()
    return _at_time_of_day(runs, chosen)


def page_of_runs(runs: RunQuerySet, before: str, size: int) -> tuple[list[Run], str]:
    """Return the newest *size* of *runs* after the cursor *before*, and the cursor of the next page.

    An empty cursor stands for the first page, and for no further one. An invalid cursor is ignored.
    """
    if position := _position(before):
        slot, key = position
        runs = runs.filter(slot__lte=slot).filter(Q(slot__lt=slot) | Q(pk__lt=key))
    rows = list(runs.select_related("series", "signature").order_by("-slot", "-pk")[: size + 1])
    shown = rows[:size]
    return shown, _cursor(shown[-1]) if len(rows) > size else ""


def causes_of(runs: RunQuerySet) -> tuple[list[CauseShare], int]:
    """Return the causes of the newest failures of *runs*, the most frequent first, and their number.

    At most ``MOST_COUNTED`` failures are counted.
    """
    failed = runs.filter(state__in=WITH_SIGNATURE).order_by("-slot")
    counts = Counter(failed.values_list("signature", flat=True)[:MOST_COUNTED])
    signatures = FailureSignature.objects.in_bulk([key for key in counts if key])
    total = counts.total()
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] or 0))
    return [CauseShare(signatures.get(key), count, count / total) for key, count in ordered if count], total


def _of_series(runs: RunQuerySet, chosen: RunFilter, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
    visible: SeriesQuerySet = Series.objects.visible_to(user).order_by()
    if not chosen.site and not chosen.series:
        return runs.filter(series__in=visible)
    if chosen.series:
        visible = visible.filter(name__icontains=chosen.series)
    if chosen.site:
        visible = visible.filter(bindings__resource__site__name=chosen.site)
    keys = list(visible.values_list("pk", flat=True).distinct()[: MOST_LISTED_SERIES + 1])
    if len(keys) > MOST_LISTED_SERIES:
        return runs.filter(series__in=visible)
    return runs.filter(series__in=keys)


def _at_time_of_day(runs: RunQuerySet, chosen: RunFilter) -> RunQuerySet:
    if chosen.from_time is None and chosen.to_time is None:
        return runs
    first, last = chosen.from_time or time.min, chosen.to_time or time.max
    runs = runs.annotate(time_of_day=TruncTime("slot", tzinfo=chosen.zone))
    after, before = Q(time_of_day__gte=first), Q(time_of_day__lte=last)
    return runs.filter(after & before if first <= last else after | before)


def _cursor(run: Run) -> str:
    return f"{run.slot.isoformat()}~{run.pk}"


def _position(cursor: str) -> tuple[datetime, uuid.UUID] | None:
    slot, _, key = cursor.partition("~")
    try:
        return parse_time(slot), uuid.UUID(key)
    except (ValueError, OverflowError):
        return None
