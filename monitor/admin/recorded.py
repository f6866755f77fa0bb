"""The admin pages of runs, metrics, forecasts, holds and heartbeats, which only the service writes."""

from __future__ import annotations

from django.contrib import admin

from monitor.admin.base import ReadOnly
from monitor.models import Forecast, Heartbeat, Hold, Metric, Run, Segment, Usage


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("series", "slot", "state", "stage", "failed_resource", "trigger")
    list_select_related = ("series",)
    list_filter = ("state", "series")


@admin.register(Usage)
class UsageAdmin(ReadOnly):
    series_lookup = "run__series"
    list_display = ("run", "site", "began_at", "bytes", "cpu_seconds")
    list_select_related = ("run__series", "site")
    list_filter = ("site",)


@admin.register(Segment)
class SegmentAdmin(ReadOnly):
    series_lookup = "series"
    list_display = ("series", "number", "began_at", "probe", "probe_version", "parameters")
    list_select_related = ("series",)
    list_filter = ("probe", "series")


@admin.register(Metric)
class MetricAdmin(ReadOnly):
    series_lookup = "segment__series"
    list_display = ("segment", "name", "unit")
    list_select_related = ("segment__series",)
    list_filter = ("segment__series",)
    search_fields = ("name",)


@admin.register(Forecast)
class ForecastAdmin(ReadOnly):
    list_display = ("metric", "issued_at", "method", "mean", "lower", "upper", "truth")
    list_select_related = ("metric__segment__series",)
    list_filter = ("method",)


@admin.register(Hold)
class HoldAdmin(ReadOnly):
    list_display = ("kind", "name", "mode", "who", "why", "began_at", "until", "ended_at", "ended_by")
    list_filter = ("kind", "mode")
    search_fields = ("name", "who", "why")


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnly):
    list_display = ("name", "seen_at", "back_at")
