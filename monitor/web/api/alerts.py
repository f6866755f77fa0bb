"""Alerts."""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.analysis.alerts.acknowledge import acknowledge
from monitor.models import Alert
from monitor.models.token import RUN
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import SeriesFilter, WindowFilter, chosen
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter, RowId

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["alerts"])


class AlertState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    ALL = "all"


class AlertOut(Schema):
    """An alert of a series or of a reporter: the other is null.

    *acknowledged_at* is null and *acknowledged_by* empty until a user acknowledges the alert, and again when
    this user may not manage it any more. *resolved_at* is null while the alert is open. *incident* is null
    for up to a minute, until the alert is grouped.
    """

    id: int
    rule: str
    series: str | None
    reporter: str | None
    since: datetime
    opened_at: datetime
    opened_by_run: uuid.UUID | None
    acknowledged_at: datetime | None
    acknowledged_by: str
    resolved_at: datetime | None
    resolved_by_run: uuid.UUID | None
    text: str
    resolution: str
    incident: int | None


def _shown(alert: Alert) -> AlertOut:
    return AlertOut(
        rule=alert.rule.name,
        series=alert.series.name if alert.series else None,
        reporter=alert.reporter.name if alert.reporter else None,
        opened_by_run=alert.opened_by_id,
        resolved_at=alert.closed_at,
        resolved_by_run=alert.closed_by_id,
        resolution=alert.closed_text,
        incident=alert.incident_id,
        **{name: getattr(alert, name) for name in _SAME_NAMES},
    )


_SAME_NAMES = ("id", "since", "opened_at", "acknowledged_at", "acknowledged_by", "text")


class AlertList(ListOut):
    alerts: list[AlertOut]


class AlertQuery(Page, SeriesFilter, WindowFilter):
    """*start* and *end* bound the time at which the alert opened."""

    state: AlertState = AlertState.OPEN
    reporter: NameFilter = ""


@router.get("/alerts", response=AlertList, operation_id="list_alerts", summary="List alerts, newest first")
def list_alerts(request: HttpRequest, query: Query[AlertQuery]) -> HttpResponse:
    """Without *state*, the open ones."""
    visible = Alert.objects.visible_to(request.user).select_related("rule", "series", "reporter")
    alerts = visible.filter(**chosen(reporter__name=query.reporter))
    if query.state != AlertState.ALL:
        alerts = alerts.filter(closed_at__isnull=query.state == AlertState.OPEN)
    rows = query.within(query.of_series(alerts), "opened_at")
    return list_rows(query, rows, AlertList, order=["-opened_at", "-id"], show=_shown)


@router.get(
    "/alerts/{alert}",
    response=AlertOut,
    operation_id="show_alert",
    openapi_extra=declare(errors={404: ["unknown_alert"]}),
    summary="Show an alert",
)
def show_alert(request: HttpRequest, alert: RowId, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return show_item(query, _shown(_found(request, alert)), AlertOut)


def _manageable(request: HttpRequest, alert: int) -> Alert:
    found = _found(request, alert)
    require_manageable(found, Alert.objects.manageable_by(request.user))
    return found


@router.post(
    "/alerts/{alert}/acknowledge",
    response=AlertOut,
    operation_id="acknowledge_alert",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_alert"], 409: ["already_settled"]},
        permission=require_site_permission,
        subject=_manageable,
    ),
    summary="Acknowledge an open alert",
)
def acknowledge_alert(request: HttpRequest, alert: RowId) -> AlertOut:
    found: Alert = subject_of(request)
    if not acknowledge(found, request.user.get_username(), timezone.now()):
        how = "resolved" if found.closed_at else f"acknowledged by {found.acknowledged_by}"
        raise Refused(409, "already_settled", f"the alert {alert} is {how} already")
    found.refresh_from_db()
    return _shown(found)


def _found(request: HttpRequest, alert: int) -> Alert:
    visible = Alert.objects.visible_to(request.user).select_related("rule", "series", "reporter")
    found = visible.filter(pk=alert).first()
    if found is None:
        raise Refused(404, "unknown_alert", f"there is no alert {alert} that you may see")
    return found
