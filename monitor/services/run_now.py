"""Ask for a run now, beside the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from monitor.models import Run, Series
from monitor.models.run import SCHEDULE
from reporters.report import run_id

if TYPE_CHECKING:
    from datetime import datetime


@transaction.atomic
def run_now(series: Series, *, who: str, now: datetime | None = None) -> Run:
    """Put a run of *series* into the ledger, due at once; the next tick claims it.

    Works for a series that is not enabled, too: somebody asked. If it is running, the
    new run waits for its end. One that waits already is the answer to all who ask.
    """
    slot = now or timezone.now()
    Series.objects.select_for_update(no_key=True).get(pk=series.pk)  # of two who ask at once one is first
    waiting = Run.objects.due(slot).filter(series=series).exclude(trigger=SCHEDULE).first()
    if waiting is not None:
        return waiting
    run, _ = Run.objects.get_or_create(
        id=run_id(series.name, slot),
        defaults={"series": series, "slot": slot, "due_at": slot, "trigger": f"asked for by {who}"},
    )
    return run
