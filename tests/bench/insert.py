"""gridcast's web server with an additional bare Django view that inserts one row."""

from __future__ import annotations

import json

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from monitor.wsgi import application  # sets up Django, which the next imports need

# isort: split
from monitor import urls
from monitor.models import Heartbeat

__all__ = ["application"]


@csrf_exempt
def insert(request: HttpRequest) -> JsonResponse:
    """Insert a row into a small table."""
    name = json.loads(request.body)["name"]
    Heartbeat.objects.create(name=name, seen_at=timezone.now())
    return JsonResponse({"name": name})


urls.urlpatterns.insert(0, path("bare", insert))
