"""Housekeeping every few minutes: partitions, forecasts, statistics, accounts, retention."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from monitor.access import tokens
from monitor.accounts import factor_duty, identities, sessions
from monitor.db import analyze
from monitor.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.engines import engine
from monitor.depot.retention.apply import RetentionResult, apply_retention
from monitor.forecasts.choose_predictors import choose_predictors
from monitor.forecasts.prune import prune_forecasts
from monitor.forecasts.refresh import reset_outdated
from monitor.ingest.pings import prune_starts
from monitor.models import AuditEvent, PasskeyChallenge
from monitor.series.deletion import prune_deletions
from monitor.webhooks.deliver import prune_deliveries

ANALYZE_INTERVAL = timedelta(days=1)
RETENTION_SECONDS = 20.0  # per call: other tasks of the same worker process wait meanwhile


def housekeep(now: datetime) -> RetentionResult | None:
    """Do the housekeeping; return what retention deleted. Return None if another process is doing it."""
    with session_lock(AdvisoryLock.HOUSEKEEPING) as is_ours:
        if not is_ours:
            return None
        engine().prepare_ahead(now)
        reset_outdated()
        choose_predictors()
        prune_forecasts(now)
        prune_starts(now)
        tokens.expire(now)
        PasskeyChallenge.objects.expire(now)
        factor_duty.keep_terms(now)
        AuditEvent.objects.expire(now - timedelta(days=settings.GRIDCAST_AUDIT_KEEP_DAYS))
        prune_deliveries(now)
        prune_deletions(now)
        for table in analyze.outdated(now - ANALYZE_INTERVAL):
            analyze.analyse(table)
        identities.suspend_overdue(now)
        identities.warn_ahead(now)
        sessions.clear_expired()
        return apply_retention(now, within_seconds=RETENTION_SECONDS)
