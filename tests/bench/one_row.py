"""gridcast's web server with an additional bare Django view that reads one row."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.urls import path

from monitor.wsgi import application  # sets up Django, which the next imports need

# isort: split
from monitor import urls
from monitor.models import ForecastState

__all__ = ["application"]


def one_row(request: HttpRequest) -> JsonResponse:
    """Read a row by its key."""
    rows = ForecastState.objects.values_list("metric", "last_value")
    metric, value = rows.get(metric=int(request.GET["metric"]))
    return JsonResponse({"metric": metric, "value": value})


urls.urlpatterns.insert(0, path("one-row", one_row))
