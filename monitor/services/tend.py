"""Tend to the depot, every few minutes: make places ahead, tell the planner, take away what is too old; see
what forecasts are to be made of anew."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.depot import planning
from monitor.depot.engines import engine
from monitor.depot.locks import held
from monitor.services.choose_predictors import choose_predictors
from monitor.services.forecast_follow import drop_outdated
from monitor.services.forecast_retain import retain_forecasts
from monitor.services.retain import Retained, retain

LOCK = 0x74656E64  # "tend"
ANALYSED_EVERY = timedelta(days=1)
RETAINS_SECONDS = 20.0  # of every call: who else works in the same process waits so long


def tend(now: datetime) -> Retained | None:
    """Do all of it, one at a time; None: somebody else is at it."""
    with held(LOCK) as is_ours:
        if not is_ours:
            return None
        engine().prepare_ahead(now)
        drop_outdated()
        choose_predictors()
        retain_forecasts(now)
        for table in planning.outdated(now - ANALYSED_EVERY):
            planning.analyse(table)
        return retain(now, within_seconds=RETAINS_SECONDS)
