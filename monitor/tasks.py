"""Celery tasks. A task may be executed twice or never, so each task reads from the database what is due."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from monitor import housekeeping
from monitor import tick as scheduler
from monitor.analysis.alerts import deliver, group, try_channel
from monitor.analysis.alerts.evaluate_reporters import evaluate_reporters
from monitor.analysis.attribution import attribute
from monitor.analysis.availability import refresh as availability
from monitor.analysis.forecasts import refresh
from monitor.analysis.outcomes import worker as outcomes
from monitor.analysis.signatures import classify_runs
from monitor.analysis.storage import compute as storage
from monitor.analysis.traces import export as traces
from monitor.analysis.webhooks import announce_sites
from monitor.analysis.webhooks import deliver as webhooks
from monitor.celery import app
from monitor.depot.rollups import worker as rollups
from monitor.depot.series import deletion
from monitor.runs.ledger import heartbeats
from monitor.runs.worker import deliver_spool, run_claimed
from monitor.web.accounts import mail
from monitor.web.status import standings


@app.task(name="monitor.tasks.tick")
def tick() -> None:
    scheduler.tick(timezone.now())


@app.task(name="monitor.tasks.heartbeat")
def heartbeat() -> None:
    heartbeats.record(heartbeats.HOME_REPORTER, timezone.now())
    deliver_spool.deliver()


@app.task(name="monitor.tasks.notify")
def notify() -> None:
    deliver.deliver_due(timezone.now())


@app.task(name="monitor.tasks.try_channel")
def try_channel_of_rule(key: str) -> None:
    try_channel.deliver(key, timezone.now())


@app.task(name="monitor.tasks.deliver_webhooks")
def deliver_webhooks() -> None:
    webhooks.deliver_webhooks(timezone.now())


@app.task(name="monitor.tasks.deliver_account_mail")
def deliver_account_mail() -> None:
    mail.deliver_due(timezone.now())


@app.task(name="monitor.tasks.export_traces")
def export_traces() -> None:
    traces.export_traces(timezone.now())


@app.task(name="monitor.tasks.watch_reporters")
def watch_reporters() -> None:
    evaluate_reporters(timezone.now())


@app.task(name="monitor.tasks.gather_dirty_hours")
def gather_dirty_hours() -> None:
    rollups.gather()
    standings.recount_due(timezone.now())


@app.task(name="monitor.tasks.update_forecasts")
def update_forecasts() -> None:
    refresh.refresh(timezone.now())


@app.task(name="monitor.tasks.roll_up")
def roll_up() -> None:
    rollups.roll(timezone.now())


@app.task(name="monitor.tasks.count_outcomes")
def count_outcomes() -> None:
    outcomes.count(timezone.now())


@app.task(name="monitor.tasks.classify_failures")
def classify_failures() -> None:
    classify_runs.classify_runs(timezone.now())


@app.task(name="monitor.tasks.attribute_failures")
def attribute_failures() -> None:
    now = timezone.now()
    attribute.attribute(now)
    group.group_alerts(now)
    announce_sites.announce_present_states(now)


@app.task(name="monitor.tasks.refresh_availability")
def refresh_availability() -> None:
    availability.refresh(timezone.now())


@app.task(name="monitor.tasks.refresh_storage")
def refresh_storage() -> None:
    storage.refresh_verdicts(timezone.now())


@app.task(name="monitor.tasks.delete_series")
def delete_series() -> None:
    deletion.delete_requested()


@app.task(name="monitor.tasks.refresh_provider")
def refresh_provider() -> None:
    if settings.GRIDCAST_IDENTITY_PROVIDER is not None:
        from monitor.web.accounts.provider import metadata  # noqa: PLC0415 - slow to import, and seldom needed

        metadata.refresh_metadata(settings.GRIDCAST_IDENTITY_PROVIDER.url, timezone.now())


@app.task(name="monitor.tasks.housekeep")
def housekeep() -> None:
    housekeeping.housekeep(timezone.now())


@app.task(name="monitor.tasks.run")
def run(run_ids: list[str], slots: list[str]) -> None:
    run_claimed.run_claimed(
        [uuid.UUID(run_id) for run_id in run_ids], [datetime.fromisoformat(slot) for slot in slots]
    )
