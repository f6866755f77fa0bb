"""Look again sooner after a run that did not pass."""

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
    """Add a run at the next slot of the retry schedule of every series that is in trouble; how many.

    None where one is under way or waits already, or where the series' own next slot comes first.
    """
    return sum(_retry(series, now) for series in _in_trouble(now))


def _in_trouble(now: datetime) -> SeriesQuerySet:
    """Those that did not pass, and since then not so often in a row as they should."""
    bad = Run.objects.filter(series=OuterRef("pk"), state__in=DID_NOT_PASS, slot__gt=now - RECENT)
    since = Q(runs__state=State.PASSED, runs__slot__gt=F("last_bad"))
    return (
        Series.objects.scheduled()
        .exclude(retry_schedule="")
        .annotate(last_bad=Subquery(bad.order_by("-slot").values("slot")[:1]))
        .exclude(last_bad=None)
        .annotate(passes=Count("runs", filter=since))
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
