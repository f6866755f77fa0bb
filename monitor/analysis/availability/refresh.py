"""Keep the stored availability up to date: bounded work per call, one process at a time, safe to kill."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.db.models.functions import TruncMonth

from monitor.analysis.availability import dirty_days_sql, results_sql
from monitor.analysis.availability.compute import WantedDay
from monitor.analysis.availability.dirty_days_sql import StoredDay
from monitor.analysis.availability.store import MOST_SLOTS, compute_and_store
from monitor.analysis.availability.versions import all_versions
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import ProfileVersion, SiteDay, SiteMonth

WITHIN_SECONDS = 5.0  # the duration of one call; then other tasks of the process run
TODAY_INTERVAL = timedelta(minutes=1)  # between two computations of the day that is not over
MOST_DAYS = 31  # per transaction
_SLOTS_PER_SECOND = 2000  # a grid with many slots a day computes today less often
_BACK = timedelta(days=62)  # after a longer pause of the service, days without results stay out


def refresh(now: datetime, *, within_seconds: float = WITHIN_SECONDS) -> bool:
    """Compute the days that are outdated, the newest first, then publish months; return whether days may be
    left.

    Each batch is a transaction. A concurrent call does nothing. The last batch may take longer than
    *within_seconds*.
    """
    until = time.monotonic() + within_seconds
    is_first = True
    while is_first or time.monotonic() < until:
        with transaction.atomic():
            if not try_lock_until_commit(AdvisoryLock.AVAILABILITY):
                return False
            if is_first:
                _mark(now)
            has_more_marks = dirty_days_sql.take_marks(_today(now))
            if not _compute_batch(now) and not has_more_marks:
                publish(now)
                return False
        is_first = False
    return True


def _mark(now: datetime) -> None:
    """Create and mark the days that are outdated because time passed."""
    today = _today(now)
    newest = SiteDay.objects.of_sites().filter(day__lte=today).aggregate(newest=Max("day"))["newest"]
    since = today if newest is None else max(newest, today - _BACK)
    dirty_days_sql.create_days(min(since, today.replace(day=1)), today)
    dirty_days_sql.mark_growing(today, now - _today_interval(today, now), _BACK)


def _today_interval(today: date, now: datetime) -> timedelta:
    """Return the time between two computations of today: more than a minute on a large grid."""
    computed = SiteDay.objects.of_sites().filter(day=today, computed_at__lte=now - TODAY_INTERVAL)
    if not computed.exists():
        return TODAY_INTERVAL
    midnight = datetime.combine(today, datetime.min.time(), UTC)
    slots = results_sql.count(midnight, midnight + timedelta(days=1))
    return max(TODAY_INTERVAL, timedelta(seconds=slots / _SLOTS_PER_SECOND))


def _compute_batch(now: datetime) -> bool:
    """Compute the newest dirty days; return whether there were any."""
    dirty = SiteDay.objects.of_sites().filter(is_dirty=True, day__lte=_today(now))
    newest = dirty.aggregate(newest=Max("day"))["newest"]
    if newest is None:
        return False
    midnight = datetime.combine(newest, datetime.min.time(), UTC)
    slots = results_sql.count(midnight, midnight + timedelta(days=1))
    days = max(1, min(MOST_DAYS, MOST_SLOTS // max(slots, 1)))
    stored = dirty_days_sql.dirty_days(newest, days)
    compute_and_store(_with_versions(stored), now)
    return True


def _with_versions(stored: Iterable[StoredDay]) -> list[WantedDay]:
    """Return the days with the versions to compute them by.

    A day that was over when it was computed keeps its version: a new version changes only days to come.
    """
    versions = all_versions()
    kept = ProfileVersion.objects.in_bulk({each.version for each in stored if each.version is not None})
    return [
        WantedDay(
            each.site,
            each.day,
            kept[each.version]
            if each.version is not None and _was_over(each)
            else versions.find(each.site, each.day),
        )
        for each in stored
    ]


def _was_over(stored: StoredDay) -> bool:
    return stored.until is not None and stored.until.astimezone(UTC).date() > stored.day


def publish(now: datetime) -> None:
    """Publish the months that ended, and were first stored, long enough ago and have no dirty day."""
    before = now - timedelta(days=settings.GRIDCAST_AVAILABILITY_FINAL_AFTER_DAYS)
    outdated = (
        SiteDay.objects.of_sites()
        .annotate(of_month=TruncMonth("day"))
        .filter(is_dirty=True, site=OuterRef("site"), of_month=OuterRef("month"))
    )
    over = SiteMonth.objects.of_sites().filter(
        published_at=None, created_at__lte=before, month__lt=_today(before).replace(day=1)
    )
    over.exclude(Exists(outdated)).update(published_at=now)


def _today(now: datetime) -> date:
    return now.astimezone(UTC).date()
