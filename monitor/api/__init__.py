"""The REST API, version 1: one resource per file."""

from __future__ import annotations

from monitor.api import (
    alerts,
    distribution,
    exports,
    forecasts,
    history,
    holds,
    latest,
    outcomes,
    pairs,
    problems,
    rank,
    reports,
    runs,
    scoreboard,
    series,
    statistics,
)
from monitor.api.auth import PersonAuth, TokenAuth
from monitor.api.interface import Api

api = Api(
    title="gridcast",
    version="1",
    description="How long will it take, where, and how sure is that?",
    urls_namespace="api-1",
    auth=[TokenAuth(), PersonAuth()],
)
problems.register(api)
# What most comes for is tried first.
api.add_router("/reports", reports.router, tags=["reports"])
api.add_router("/forecasts", forecasts.router, tags=["forecasts"])
api.add_router("/forecasts", rank.router, tags=["forecasts"])
api.add_router("/forecasts", outcomes.router, tags=["forecasts"])
api.add_router("/scoreboard", scoreboard.router, tags=["forecasts"])
api.add_router("/series", series.router, tags=["series"])
for resource in (history, statistics, distribution, exports):
    api.add_router("/series", resource.router, tags=["values"])
api.add_router("/series", latest.of_series, tags=["latest"])
api.add_router("/latest", latest.router, tags=["latest"])
api.add_router("/pairs", pairs.router, tags=["values"])
api.add_router("/runs", runs.router, tags=["runs"])
api.add_router("/alerts", alerts.router, tags=["alerts"])
api.add_router("/holds", holds.router, tags=["holds"])
