"""Alerts."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.api.http.auth import require_manageable, require_site_permission
from monitor.api.http.problems import Refused
from monitor.models import Alert

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["alerts"])
MOST_ID = 2**63


class AlertOut(Schema):
    """One of *series* and *reporter* is empty: an alert is of a series or of a reporter.

    *since* is the start of the condition. *acknowledged_at* is null and *acknowledged_by* empty until a user
    acknowledges the alert. *closed_at* is null while the alert is open. *opened_by* and
    *closed_by* are the ids of the runs that opened and closed the alert. *incident* is null for up to a
    minute, until the alert is grouped.
    """

    id: int
    rule: str
    series: str
    reporter: str
    since: datetime
    opened_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str
    closed_at: datetime | None
    opened_by: uuid.UUID | None
    closed_by: uuid.UUID | None
    text: str
    closed_text: str
    incident: int | None

    @staticmethod
    def resolve_rule(alert: Alert) -> str:
        return alert.rule.name

    @staticmethod
    def resolve_series(alert: Alert) -> str:
        return alert.series.name if alert.series else ""

    @staticmethod
    def resolve_reporter(alert: Alert) -> str:
        return alert.reporter.name if alert.reporter else ""

    @staticmethod
    def resolve_incident(alert: Alert) -> int | None:
        return alert.incident_id

    @staticmethod
    def resolve_opened_by(alert: Alert) -> uuid.UUID | None:
        return alert.opened_by_id

    @staticmethod
    def resolve_closed_by(alert: Alert) -> uuid.UUID | None:
        return alert.closed_by_id


@router.get(
    "/alerts",
    response=list[AlertOut],
    operation_id="monitor_api_alerts_every",
    summary="List open alerts; with closed=true all alerts, newest first",
)
def list_alerts(
    request: HttpRequest,
    closed: bool = False,
    series: str | None = None,
    reporter: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[Alert]:
    visible = Alert.objects.visible_to(request.user).select_related("rule", "series", "reporter")
    alerts = visible if closed else visible.open()
    names = {"series__name": series, "reporter__name": reporter}
    return list(alerts.filter(**{lookup: name for lookup, name in names.items() if name})[:limit])


@router.post("/alerts/{alert}/acknowledge", response=AlertOut, summary="Acknowledge an open alert")
def acknowledge_alert(request: HttpRequest, alert: int) -> Alert:
    require_site_permission(request)
    visible = Alert.objects.visible_to(request.user).select_related("rule", "series", "reporter")
    found = visible.filter(pk=alert).first() if 0 < alert < MOST_ID else None
    if found is None:
        raise Refused(404, "unknown_alert", f"there is no alert {alert} that you may see")
    require_manageable(found, Alert.objects.manageable_by(request.user))
    if not Alert.objects.filter(pk=found.pk).acknowledge(request.user.get_username(), timezone.now()):
        how = "resolved" if found.closed_at else f"acknowledged by {found.acknowledged_by}"
        raise Refused(409, "already_settled", f"the alert {alert} is {how} already")
    found.refresh_from_db()
    return found
