"""Retry a series sooner than its schedule after a run that did not pass."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, F, OuterRef, Q, Subquery

from monitor.models import Run, Series
from monitor.models.run import DID_NOT_PASS, RETRY, State
from reporters.report import run_id
from reporters.schedule import InvalidSchedule, parse_schedule

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models.series import SeriesQuerySet

logger = logging.getLogger(__name__)
RECENT = timedelta(days=7)


def retry(now: datetime) -> int:
    """Add a run at the next slot of the retry schedule of each failing series; return the number of runs.

    A series that has a pending run at or before this slot is skipped.
    """
    return sum(_retry(series, now) for series in _failing(now))


def _failing(now: datetime) -> SeriesQuerySet:
    """Return the series with fewer than ``retry_passes`` passed runs since their last failure."""
    failures = Run.objects.filter(series=OuterRef("pk"), state__in=DID_NOT_PASS, slot__gt=now - RECENT)
    passed_since = Q(runs__state=State.PASSED, runs__slot__gt=F("last_failure"))
    return (
        Series.objects.scheduled()
        .exclude(retry_schedule="")
        .annotate(last_failure=Subquery(failures.order_by("-slot").values("slot")[:1]))
        .exclude(last_failure=None)
        .annotate(passes=Count("runs", filter=passed_since))
        .filter(passes__lt=F("retry_passes"))
    )


def _retry(series: Series, now: datetime) -> int:
    try:
        schedule = parse_schedule(series.retry_schedule, series.name, zone=series.timezone)
    except InvalidSchedule as error:
        logger.error("series %s is not retried: %s", series.name, error)
        return 0
    slot = schedule.next_after(now)
    if slot is None or series.runs.pending().filter(slot__lte=slot).exists():
        return 0
    run = Run(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, trigger=RETRY)
    Run.objects.bulk_create([run], ignore_conflicts=True)
    return 1
