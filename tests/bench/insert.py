"""gridcast's web with a bare Django view beside ours, which inserts one row and says that it did."""

from __future__ import annotations

import json

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from monitor.wsgi import application  # sets Django up, which the others need

# isort: split
from monitor import urls
from monitor.models import Heartbeat

__all__ = ["application"]


@csrf_exempt
def insert(request: HttpRequest) -> JsonResponse:
    """A row of a small table, of what came."""
    name = json.loads(request.body)["name"]
    Heartbeat.objects.create(name=name, seen_at=timezone.now())
    return JsonResponse({"name": name})


urls.urlpatterns.insert(0, path("bare", insert))
