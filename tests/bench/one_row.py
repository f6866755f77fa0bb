"""gridcast's web with a bare Django view beside ours, which reads one row and says what is in it."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.urls import path

from monitor.wsgi import application  # sets Django up, which the others need

# isort: split
from monitor import urls
from monitor.models import ForecastState

__all__ = ["application"]


def one_row(request: HttpRequest) -> JsonResponse:
    """A row, by its key."""
    metric, mean = ForecastState.objects.values_list("metric", "mean").get(metric=int(request.GET["metric"]))
    return JsonResponse({"metric": metric, "mean": mean})


urls.urlpatterns.insert(0, path("one-row", one_row))
