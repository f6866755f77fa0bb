"""Tend to the depot, every few minutes: make places ahead, tell the planner, take away what is too old; see
what forecasts are to be made of anew."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.db import analyze
from monitor.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.engines import engine
from monitor.depot.retention.apply import RetentionResult, apply_retention
from monitor.forecasts.choose_predictors import choose_predictors
from monitor.forecasts.prune import prune_forecasts
from monitor.forecasts.refresh import reset_outdated

ANALYSED_EVERY = timedelta(days=1)
RETAINS_SECONDS = 20.0  # of every call: who else works in the same process waits so long


def housekeep(now: datetime) -> RetentionResult | None:
    """Do all of it, one at a time; None: somebody else is at it."""
    with session_lock(AdvisoryLock.HOUSEKEEPING) as is_ours:
        if not is_ours:
            return None
        engine().prepare_ahead(now)
        reset_outdated()
        choose_predictors()
        prune_forecasts(now)
        for table in analyze.outdated(now - ANALYSED_EVERY):
            analyze.analyse(table)
        return apply_retention(now, within_seconds=RETAINS_SECONDS)
