"""The REST API, version 1: one resource per file."""

from __future__ import annotations

from ninja import NinjaAPI
from ninja.security import django_auth

from monitor.api import alerts, forecasts, holds, problems, runs, series
from monitor.api.auth import TokenAuth

api = NinjaAPI(
    title="gridcast",
    version="1",
    description="How long will it take, where, and how sure is that?",
    urls_namespace="api-1",
    auth=[TokenAuth(), django_auth],
)
problems.register(api)
api.add_router("/forecasts", forecasts.router, tags=["forecasts"])
api.add_router("/series", series.router, tags=["series"])
api.add_router("/runs", runs.router, tags=["runs"])
api.add_router("/alerts", alerts.router, tags=["alerts"])
api.add_router("/holds", holds.router, tags=["holds"])
