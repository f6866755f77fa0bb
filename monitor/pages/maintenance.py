"""The maintenance windows that a user may see, as an iCalendar file."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from monitor.ledger.maintenance_calendar import CONTENT_TYPE, calendar_for_user
from monitor.models import MaintenanceWindow
from monitor.pages.http.access import members_only


@members_only
@require_safe
def calendar(request: HttpRequest) -> HttpResponse:
    data = calendar_for_user(MaintenanceWindow.objects.all(), request.user, timezone.now())
    return HttpResponse(data, content_type=CONTENT_TYPE)


urlpatterns = [path("maintenance.ics", calendar, name="maintenance-calendar")]
