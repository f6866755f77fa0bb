"""Celery's wrappers. Every task may run twice, or never: the ledger decides."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.utils import timezone

from monitor.celery import app
from monitor.services import deliver, execute, forecast_follow
from monitor.services import notify as notifying
from monitor.services import roll as rolling
from monitor.services import tend as tending
from monitor.services import tick as ticking
from monitor.services.health import seen


@app.task(name="monitor.tasks.tick")
def tick() -> None:
    ticking.tick(timezone.now())


@app.task(name="monitor.tasks.pulse")
def pulse() -> None:
    seen("reporter.home", timezone.now())
    deliver.deliver()


@app.task(name="monitor.tasks.notify")
def notify() -> None:
    notifying.send_due(timezone.now())


@app.task(name="monitor.tasks.gather_marks")
def gather_marks() -> None:
    rolling.gather()


@app.task(name="monitor.tasks.forecast")
def forecast() -> None:
    forecast_follow.refresh(timezone.now())


@app.task(name="monitor.tasks.roll")
def roll() -> None:
    rolling.roll(timezone.now())


@app.task(name="monitor.tasks.tend")
def tend() -> None:
    tending.tend(timezone.now())


@app.task(name="monitor.tasks.run")
def run(run_ids: list[str], slots: list[str] | None = None) -> None:
    known = None if slots is None else [datetime.fromisoformat(one) for one in slots]
    execute.execute([uuid.UUID(one) for one in run_ids], known)
