"""Bare Celery: a task that does nothing, with the settings of gridcast's tasks."""

from __future__ import annotations

from celery import Celery

app = Celery("bare")
app.config_from_object("monitor.settings", namespace="CELERY")


@app.task(name="bare.noop")
def noop(run_id: str) -> None:
    """Do nothing; the arguments are those of gridcast's task."""
