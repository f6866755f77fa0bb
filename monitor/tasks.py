"""Celery's wrappers. Every task may run twice, or never: the ledger decides."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.utils import timezone

from monitor import housekeeping as tending
from monitor import tick as ticking
from monitor.alerts import deliver as notifying
from monitor.celery import app
from monitor.depot.rollups import worker as rolling
from monitor.forecasts import refresh
from monitor.ledger import heartbeats
from monitor.worker import deliver_spool, run_claimed


@app.task(name="monitor.tasks.tick")
def tick() -> None:
    ticking.tick(timezone.now())


@app.task(name="monitor.tasks.pulse")
def pulse() -> None:
    heartbeats.record("reporter.home", timezone.now())
    deliver_spool.deliver()


@app.task(name="monitor.tasks.notify")
def notify() -> None:
    notifying.deliver_due(timezone.now())


@app.task(name="monitor.tasks.gather_marks")
def gather_marks() -> None:
    rolling.gather()


@app.task(name="monitor.tasks.forecast")
def forecast() -> None:
    refresh.refresh(timezone.now())


@app.task(name="monitor.tasks.roll")
def roll() -> None:
    rolling.roll(timezone.now())


@app.task(name="monitor.tasks.tend")
def tend() -> None:
    tending.housekeep(timezone.now())


@app.task(name="monitor.tasks.run")
def run(run_ids: list[str], slots: list[str] | None = None) -> None:
    known = None if slots is None else [datetime.fromisoformat(one) for one in slots]
    run_claimed.run_claimed([uuid.UUID(one) for one in run_ids], known)
