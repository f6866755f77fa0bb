"""Ask for a run now, beside the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.models import Run, Series
from reporters.report import run_id

if TYPE_CHECKING:
    from datetime import datetime


def run_now(series: Series, *, who: str, now: datetime | None = None) -> Run:
    """Put a run of *series* into the ledger, due at once; the next tick claims it.

    Works for a series that is not enabled, too: somebody asked. If it is running, the
    new run waits for its end.
    """
    slot = now or timezone.now()
    run, _ = Run.objects.get_or_create(
        id=run_id(series.name, slot),
        defaults={"series": series, "slot": slot, "trigger": f"asked for by {who}"},
    )
    return run
