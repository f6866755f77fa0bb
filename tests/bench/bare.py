"""Celery by itself: a task that does nothing, with the settings that gridcast's tasks have."""

from __future__ import annotations

from celery import Celery

app = Celery("bare")
app.config_from_object("monitor.settings", namespace="CELERY")


@app.task(name="bare.noop")
def noop(run_id: str) -> None:
    """Do nothing with what gridcast's task is sent."""
