"""Delete series with many runs in the background, in transactions of bounded size.

A request disables the series and records its deletion. The control worker then deletes runs, oldest first,
with their reports and values; then what else is numerous; at last the series. Each step finds what is left,
so that a worker that dies costs nothing: the next one goes on.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import F, Model, ProtectedError, QuerySet
from django.utils import timezone

from monitor.core.db.advisory_locks import AdvisoryLock, retry_on_lock_timeout, session_lock
from monitor.depot.series.delete import delete_series
from monitor.models import (
    Alert,
    AttributedRun,
    ConflictingReport,
    Correction,
    Forecast,
    Metric,
    Outcome,
    Run,
    Sample,
    Series,
    SeriesDeletion,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.models.series import SeriesQuerySet

logger = logging.getLogger(__name__)
BUSY_SECONDS = 20.0  # one task deletes for this long, the next task the rest
KEPT = timedelta(days=30)  # the record of a deletion
# What a series may have as many of as runs, by the path to the series. The last step deletes the rest.
NUMEROUS: dict[type[Model], str] = {
    Forecast: "metric__segment__series",
    Outcome: "metric__segment__series",
    Correction: "metric__segment__series",
    Alert: "series",
    AttributedRun: "series",
    ConflictingReport: "series",
}


@dataclass(frozen=True)
class StepSize:
    """How many runs, and how many other rows, a transaction deletes."""

    runs: int = 500
    rows: int = 2_000


def remove_series(series: SeriesQuerySet, *, who: str, now: datetime) -> list[SeriesDeletion]:
    """Delete *series*, in the background if they have many runs; return the deletions that are under way.

    Raises:
        ProtectedError: other series follow them; nothing was changed.
    """
    most = settings.GRIDCAST_DELETED_AT_ONCE_RUNS
    found = list(series.select_related("suite").order_by("name"))
    begun = set(SeriesDeletion.objects.under_way().filter(series__in=found).values_list("series", flat=True))
    large = [each for each in found if each.pk in begun or each.runs.order_by()[most : most + 1].exists()]
    with transaction.atomic():
        delete_series(series.exclude(pk__in=[each.pk for each in large]))
        for each in large:
            others = each.followers.exclude(deletion__isnull=False).exclude(pk__in=[one.pk for one in large])
            followers: set[Model] = {*others}
            if followers:
                raise ProtectedError(f"other series follow {each}", followers)
        return [_request(each, who, now) for each in large]


def _request(series: Series, who: str, now: datetime) -> SeriesDeletion:
    Series.objects.filter(pk=series.pk).update(enabled=False)
    deletion, _ = SeriesDeletion.objects.get_or_create(
        series=series,
        defaults={
            "name": series.name,
            "suite": series.suite,
            "requested_at": now,
            "requested_by": who[:150],
            "runs": series.runs.count(),
        },
    )
    return deletion


def delete_requested(within_seconds: float = BUSY_SECONDS, size: StepSize = StepSize()) -> int:
    """Go on with the deletions under way; return how many series are gone now."""
    ended, until = 0, time.monotonic() + within_seconds
    with session_lock(AdvisoryLock.DELETIONS) as is_ours:
        if not is_ours:
            return 0
        for deletion in SeriesDeletion.objects.under_way().order_by("pk"):
            while _delete_step(deletion, size):
                if time.monotonic() >= until:
                    return ended
            ended += _end(deletion)
    return ended


def prune_deletions(now: datetime) -> int:
    return SeriesDeletion.objects.filter(ended_at__lt=now - KEPT).delete()[0]


def _delete_step(deletion: SeriesDeletion, size: StepSize) -> bool:
    """Delete some of what is numerous in one transaction; return False if nothing was left."""
    steps: list[Callable[[], bool]] = [
        partial(_delete_runs, deletion, size.runs),
        partial(_delete_samples, deletion),
        *(partial(_delete_rows, model, path, deletion, size.rows) for model, path in NUMEROUS.items()),
    ]
    return any(retry_on_lock_timeout(step) for step in steps)


def _delete_runs(deletion: SeriesDeletion, most: int) -> bool:
    """Delete the oldest runs with their reports and values; return False if there were none."""
    runs = Run.objects.filter(series=deletion.series_id)
    slots = list(runs.order_by("slot").values_list("slot", flat=True)[:most])
    if not slots:
        return False
    _samples(deletion).filter(time__gte=slots[0], time__lte=slots[-1]).delete()
    runs.filter(slot__gte=slots[0], slot__lte=slots[-1]).delete()
    row = SeriesDeletion.objects.filter(pk=deletion.pk)
    row.update(deleted_runs=F("deleted_runs") + len(slots))
    return True


def _delete_samples(deletion: SeriesDeletion) -> bool:
    """Delete values whose runs are gone; return False if there were none."""
    oldest = _samples(deletion).order_by("time").values_list("time", flat=True).first()
    if oldest is None:
        return False
    _samples(deletion).filter(time__lt=oldest + timedelta(days=1)).delete()
    return True


def _samples(deletion: SeriesDeletion) -> QuerySet[Sample]:
    metrics = Metric.objects.filter(segment__series=deletion.series_id).values_list("pk", flat=True)
    return Sample.objects.filter(metric__in=list(metrics))


def _delete_rows(model: type[Model], path: str, deletion: SeriesDeletion, most: int) -> bool:
    rows = model._default_manager.filter(**{path: deletion.series_id}).order_by("pk")  # noqa: SLF001  # Django's
    keys = list(rows.values_list("pk", flat=True)[:most])
    model._default_manager.filter(pk__in=keys).delete()  # noqa: SLF001
    return bool(keys)


def _end(deletion: SeriesDeletion) -> bool:
    """Delete the series itself; return False if that is not possible now."""
    row = SeriesDeletion.objects.filter(pk=deletion.pk)
    try:
        with transaction.atomic():
            delete_series(Series.objects.filter(deletion=deletion))
            row.update(ended_at=timezone.now(), hindrance="")
    except ProtectedError as error:
        names = sorted(str(each) for each in error.protected_objects)
        row.update(hindrance=f"in use by {', '.join(names[:5])}")
        return False
    logger.info("deleted the series %s with %d runs", deletion.name, deletion.runs)
    return True
