"""Answering a forecast by HTTP, against a bare view that reads one row."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.contrib.auth.models import User
from django.http import HttpRequest, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.utils import timezone

from monitor.models import ApiToken, Forecast
from monitor.services.define import SeriesDefinition, define
from monitor.services.ingest import ingest
from monitor.urls import urlpatterns as all_patterns
from reporters import report as wire
from reporters.config import Resource
from tests.bench.base import Result, interleaved
from tests.monitor.builders import circle_report

VALUES = 500
REQUESTS = 200


def one_row(_: HttpRequest) -> JsonResponse:
    return JsonResponse({"mean": Forecast.objects.values_list("mean", flat=True)[0]})


urlpatterns = [*all_patterns, path("one-row", one_row)]


def measure() -> list[Result]:
    resources = [Resource(name, name, str(Path("/") / name)) for name in ("near", "far")]
    ring = {"ring": ["near", "far"]}
    define(resources, [SeriesDefinition("asked", "circle", ring, {"file_bytes": 1000})])  # as the reports say
    for number in range(VALUES):
        slot = timezone.now() - timedelta(minutes=VALUES - number)
        ingest(wire.to_json(circle_report(slot, series="asked", ring_seconds=4.0 + number % 7)))
    user = User.objects.create_user("bench")
    token = ApiToken.objects.issue(user, "bench", ["read"])
    with override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"]):
        client = Client(headers={"authorization": f"Bearer {token}"})
        first = client.get("/api/v1/forecasts", {"series": "asked"})
        if first.status_code != 200:
            raise AssertionError(f"no forecast: {first.content.decode()}")
        ours, bare = interleaved(
            lambda: client.get("/api/v1/forecasts", {"series": "asked"}),
            lambda: client.get("/one-row"),
            REQUESTS,
        )
    return [
        Result(
            name="forecast by API / bare view of one row",
            ratio=bare / ours,
            target=0.08,
            better="higher",
            figures={"forecast, ms": ours * 1000, "bare view, ms": bare * 1000},
        )
    ]
