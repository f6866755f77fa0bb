"""The table of runs: those that a filter selects, newest first, page by page, and their causes."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

from django.db.models import BooleanField, OuterRef, Q
from django.db.models.expressions import RawSQL

from monitor.models import Binding, FailureSignature, Run, Series
from monitor.models.run import DID_NOT_PASS, ENDED, IN_FLIGHT, WITH_SIGNATURE
from monitor.models.selected_time import SelectedTime
from monitor.models.visibility import has_row
from reporters.fields import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.run import RunQuerySet
    from monitor.models.series import SeriesQuerySet

NOT_PASSED, IN_PROGRESS = "not_passed", "in_progress"  # outcomes that stand for several states
MOST_LISTED_SERIES = 500  # so many are looked up by series, and more by time
MOST_HASHED_SERIES = 20_000  # of so many, PostgreSQL hashes the keys; of more, each run looks its series up
MOST_COUNTED = 2_000  # newest failed runs whose causes are counted
MOST_DAYS = 92  # in which runs at a time of day are searched, as each is a query
_DAY = timedelta(days=1)
_OF_KEYS = "monitor_run.series_id = ANY (%s::bigint[])"


@dataclass(frozen=True, kw_only=True)
class RunFilter(SelectedTime):
    """The runs to show, by their slots; an empty text selects everything.

    Attributes:
        series: a part of the name of the series.
        outcome: a state, ``NOT_PASSED`` or ``IN_PROGRESS``; empty: every state in which runs end.
        signature: the name of the cause.
        from_time, to_time: the time of day of the slot in *zone*, until before *to_time*, which may be that
            of the next day. None: midnight. With one of them, at most ``MOST_DAYS`` days are searched.
    """

    zone: tzinfo
    site: str = ""
    series: str = ""
    outcome: str = ""
    stage: str = ""
    signature: str = ""
    from_time: time | None = None
    to_time: time | None = None


@dataclass(frozen=True)
class CauseShare:
    """The number of *runs* with the cause *signature*, and their share of all that are counted."""

    signature: FailureSignature
    runs: int
    share: float


def states_of(outcome: str) -> Sequence[str]:
    """Return the states that *outcome* stands for; those in which runs end for one that is unknown."""
    if outcome == NOT_PASSED:
        return DID_NOT_PASS
    if outcome == IN_PROGRESS:
        return IN_FLIGHT
    return [outcome] if outcome in ENDED else ENDED


def selected_runs(chosen: RunFilter, user: AbstractBaseUser | AnonymousUser) -> Sequence[RunQuerySet]:
    """Return the runs that *chosen* selects and *user* may see: one unordered queryset per span of time.

    The spans are disjoint, the newest first. There is one per day if *chosen* has a time of day.
    """
    states = states_of(chosen.outcome)
    if chosen.stage:  # of which other runs have none
        states = [state for state in states if state in (*DID_NOT_PASS, *IN_FLIGHT)]
    runs = _of_series(chosen.within(Run.objects.filter(state__in=states).order_by(), "slot"), chosen, user)
    if chosen.stage:
        runs = runs.filter(stage=chosen.stage)
    if chosen.signature:
        signature = FailureSignature.objects.filter(name=chosen.signature).first()
        runs = runs.filter(signature=signature, state__in=WITH_SIGNATURE) if signature else runs.none()
    if chosen.from_time is None and chosen.to_time is None:
        return [runs]
    return [runs.filter(slot__gte=start, slot__lt=end) for start, end in spans_of_day(chosen)]


def spans_of_day(chosen: RunFilter) -> list[tuple[datetime, datetime]]:
    """Return the spans of time, newest first, in which it is the time of day that *chosen* asks for. Pure."""
    first, last = chosen.from_time or time.min, chosen.to_time or time.min
    over_midnight = _DAY if last <= first else timedelta()
    start = max(filter(None, (chosen.start, chosen.end - MOST_DAYS * _DAY)))
    today, spans = chosen.end.astimezone(chosen.zone).date(), []
    for ago in range((chosen.end - start).days + 3):
        day = today - ago * _DAY
        begins_at = max(datetime.combine(day, first, chosen.zone), start)
        ends_at = min(datetime.combine(day + over_midnight, last, chosen.zone), chosen.end)
        if begins_at < ends_at:
            spans.append((begins_at, ends_at))
    return spans


def page_of_runs(parts: Iterable[RunQuerySet], before: str, size: int) -> tuple[list[Run], str]:
    """Return the newest *size* runs of *parts* after the cursor *before*, and the cursor of the next page.

    An empty cursor stands for the first page, and for no further one. An invalid cursor is ignored.
    """
    position, rows = _position(before), list[Run]()
    for runs in parts:
        newest = runs.select_related("series", "signature").order_by("-slot", "-pk")
        if position:
            slot, key = position
            newest = newest.filter(slot__lte=slot).filter(Q(slot__lt=slot) | Q(pk__lt=key))
        rows += newest[: size + 1 - len(rows)]
        if len(rows) > size:
            return rows[:size], _cursor(rows[size - 1])
    return rows, ""


def causes_of(parts: Iterable[RunQuerySet]) -> tuple[list[CauseShare], int]:
    """Return the causes of the newest failures of *parts*, the most frequent first, and their number.

    At most ``MOST_COUNTED`` failures are counted. Those without a cause, which are not classified yet, are
    left out: only runs with a cause have an index.
    """
    causes: list[int | None] = []
    for runs in parts:
        failed = runs.filter(state__in=WITH_SIGNATURE, signature__isnull=False).order_by("-slot")
        causes += failed.values_list("signature", flat=True)[: MOST_COUNTED - len(causes)]
        if len(causes) == MOST_COUNTED:
            break
    counts = Counter(causes)
    signatures = FailureSignature.objects.in_bulk([key for key in counts if key])
    shares = [CauseShare(each, counts[key], counts[key] / len(causes)) for key, each in signatures.items()]
    return sorted(shares, key=lambda share: (-share.runs, share.signature.name)), len(causes)


def _of_series(runs: RunQuerySet, chosen: RunFilter, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
    if not chosen.site and not chosen.series:
        return runs.each_visible_to(user)
    visible: SeriesQuerySet = Series.objects.visible_to(user).order_by()
    if chosen.series:
        visible = visible.filter(name__has_text=chosen.series)
    if chosen.site:
        at_site = Binding.objects.filter(resource__site__name=chosen.site).order_by()
        visible = visible.filter(pk__in=at_site.values("series"))
    keys = list(visible.values_list("pk", flat=True)[: MOST_HASHED_SERIES + 1])
    if len(keys) > MOST_HASHED_SERIES:  # looked up for each run, the newest first
        return runs.filter(has_row(visible.filter(pk=OuterRef("series"))))
    if len(keys) > MOST_LISTED_SERIES:
        return runs.filter(RawSQL(_OF_KEYS, [keys], BooleanField()))  # noqa: S611  # a constant statement
    return runs.filter(series__in=keys)


def _cursor(run: Run) -> str:
    return f"{run.slot.isoformat()}~{run.pk}"


def _position(cursor: str) -> tuple[datetime, uuid.UUID] | None:
    slot, _, key = cursor.partition("~")
    try:
        return parse_time(slot), uuid.UUID(key)
    except (ValueError, OverflowError):
        return None
