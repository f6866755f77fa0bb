"""Housekeeping every few minutes: partitions, forecasts, statistics, accounts, retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings

from monitor.analysis.forecasts.choose_predictors import choose_predictors
from monitor.analysis.forecasts.prune import prune_forecasts
from monitor.analysis.forecasts.refresh import reset_outdated
from monitor.analysis.webhooks.deliver import prune_deliveries
from monitor.core.db import analyze
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.access import tokens
from monitor.depot.engines import engine
from monitor.depot.retention.apply import RetentionResult, apply_retention
from monitor.depot.series.deletion import prune_deletions
from monitor.models import AuditEvent, PasskeyChallenge, ProviderLogout
from monitor.runs.ingest.pings import prune_starts
from monitor.web.accounts import factor_duty, identities, sessions

ANALYZE_INTERVAL = timedelta(days=1)
RETENTION_SECONDS = 20.0  # per call: other tasks of the same worker process wait meanwhile


def housekeep(now: datetime) -> RetentionResult | None:
    """Do the housekeeping; return what retention deleted. Return None if another process is doing it.

    Raises:
        ExceptionGroup: some steps failed; the others were done.
    """
    with session_lock(AdvisoryLock.HOUSEKEEPING) as is_ours:
        if not is_ours:
            return None
        failures = []
        for step in _STEPS:
            try:
                step(now)
            except Exception as error:  # noqa: BLE001  # one that fails must not keep the others back
                failures.append(error)
        deleted = apply_retention(now, within_seconds=RETENTION_SECONDS)
        if failures:
            raise ExceptionGroup("housekeeping: not all steps succeeded", failures)
        return deleted


def _analyse(now: datetime) -> None:
    for table in analyze.outdated(now - ANALYZE_INTERVAL):
        analyze.analyse(table)


_STEPS: Sequence[Callable[[datetime], object]] = (
    lambda now: engine().prepare_ahead(now),
    lambda _now: reset_outdated(),
    lambda _now: choose_predictors(),
    prune_forecasts,
    prune_starts,
    tokens.expire,
    PasskeyChallenge.objects.expire,
    ProviderLogout.objects.expire,
    identities.suspend_overdue,
    identities.warn_ahead,
    factor_duty.keep_terms,
    lambda now: AuditEvent.objects.expire(now - timedelta(days=settings.GRIDCAST_AUDIT_KEEP_DAYS)),
    prune_deliveries,
    prune_deletions,
    _analyse,
    lambda _now: sessions.clear_expired(),
)
